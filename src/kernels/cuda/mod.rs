//! Operations on GPUs, as CUDA C: the text of a kernel is made for an operation, its dtypes and the
//! number of its dimensions; sizes, strides and numbers are arguments, so that tensors of other
//! shapes share it.

mod check;
mod copy;
mod elementwise;
mod expression;
mod index;
mod launch;
mod matmul;
mod optim;
mod program;
mod random;
mod reduce;
mod rows;
mod source;
mod target;
mod types;
mod walk;

use crate::error::Result;
use crate::ops::{Family, Kind, Meta};
pub use launch::{Runner, codes};
pub use program::Program;
pub use target::Cuda;

/// What runs for an operation; `io` are the inputs, then the outputs with their actual metas. None
/// for operations that have no kernel.
///
/// # Errors
/// What the operation's inference rejects.
pub fn program(kind: &Kind, io: &[&Meta]) -> Result<Option<Program>> {
    Ok(Some(match kind {
        Kind::Binary(_)
        | Kind::BinaryScalar(_)
        | Kind::Unary(_)
        | Kind::UnaryGrad(_)
        | Kind::Where(_) => return elementwise::program(kind, io),
        Kind::Advance(op) => random::advance(op),
        Kind::Arange(op) => copy::arange(op, io[0])?,
        Kind::Cast(op) => copy::copied(op.name(), io[0], io[1]),
        Kind::Concat(op) => copy::concat(op, io)?,
        Kind::Convert(op) => copy::converted(op.name(), io[0], io[1]),
        Kind::Copy(op) => copy::copied(op.name(), io[0], io[1]),
        Kind::Dropout(op) => random::dropout(op, io),
        Kind::DropoutGrad(op) => random::dropout_grad(op, io),
        Kind::Fill(op) => copy::fill(op, io[0])?,
        Kind::Gather(op) => index::gather(op, io)?,
        Kind::GatherElements(op) => index::gather_elements(op, io)?,
        Kind::GatherElementsGrad(op) => index::gather_elements_grad(op, io)?,
        Kind::GatherGrad(op) => index::gather_grad(op, io)?,
        Kind::Matmul(_) => matmul::program([io[0], io[1], io[2]]),
        Kind::Places(op) => index::places(op, io),
        Kind::Random(op) => random::draw(op, io[1]),
        Kind::Reduce(op) => reduce::program(op, io)?,
        Kind::Region(op) => return elementwise::region(op, io),
        Kind::Softmax(op) => rows::softmax(op, io)?,
        Kind::SoftmaxCrossEntropy(op) => rows::loss(op, io)?,
        Kind::SoftmaxCrossEntropyGrad(op) => rows::loss_grad(op, io)?,
        Kind::SoftmaxGrad(op) => rows::softmax_grad(op, io)?,
        Kind::Update(op) => optim::program(op, io),
        // No kernels yet: convolution, pooling, normalisation, recurrence and attention;
        // linear algebra, assignment by index, sorting and running totals.
        Kind::Attention(_)
        | Kind::AttentionGrad(_)
        | Kind::AvgPool(_)
        | Kind::AvgPoolGrad(_)
        | Kind::BatchNorm(_)
        | Kind::BatchNormFactor(_)
        | Kind::BatchNormGrad(_)
        | Kind::BatchNormInference(_)
        | Kind::BatchNormInferenceGrad(_)
        | Kind::BatchNormReluGrad(_)
        | Kind::BatchNormStatistics(_)
        | Kind::Conv(_)
        | Kind::ConvGradInput(_)
        | Kind::ConvGradWeight(_)
        | Kind::FoldBatchNorm(_)
        | Kind::LayerNorm(_)
        | Kind::LayerNormGrad(_)
        | Kind::Linalg(_)
        | Kind::MaxPool(_)
        | Kind::MaxPoolGrad(_)
        | Kind::Normalize(_)
        | Kind::Recurrent(_)
        | Kind::RecurrentGrad(_)
        | Kind::RmsNorm(_)
        | Kind::RmsNormGrad(_)
        | Kind::RunningAverage(_)
        | Kind::Scan(_)
        | Kind::Solve(_)
        | Kind::Sort(_)
        | Kind::TensorScatter(_)
        | Kind::TriangularSolve(_) => return Ok(None),
        // Of a processor's own layouts, of the host, and between processes.
        Kind::ExchangeFinish(_)
        | Kind::ExchangeStart(_)
        | Kind::Host(_)
        | Kind::Pack(_)
        | Kind::Packed(_) => return Ok(None),
    }))
}
