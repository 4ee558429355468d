//! Recurrent layers and their gradients: of each step a product with the weights, and a kernel of one
//! thread a row and unit.

mod backward;
mod forward;
mod layer;
mod staged;

pub use backward::recurrent_grad;
pub use forward::recurrent;
