//! Operations on GPUs, as CUDA C: the text of a kernel is made for an operation, its dtypes and the
//! number of its dimensions; sizes, strides and numbers are arguments, so that tensors of other
//! shapes share it.

mod attention;
mod check;
mod conv;
mod copy;
mod elementwise;
mod expression;
pub mod gpus;
mod index;
mod launch;
mod matmul;
mod norm;
mod optim;
mod order;
mod pooling;
mod program;
mod random;
mod recurrent;
mod reduce;
mod row_norm;
mod rows;
mod runs;
mod source;
mod target;
mod types;
mod walk;
mod window;

use crate::error::Result;
use crate::ops::{Family, Kind, Meta};
pub use launch::Runner;
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
        Kind::Attention(op) => attention::attention(op, io)?,
        Kind::AttentionGrad(op) => attention::attention_grad(op, io)?,
        Kind::AvgPool(op) => pooling::avg_pool(op, io),
        Kind::AvgPoolGrad(op) => pooling::avg_pool_grad(op, io),
        Kind::BatchNorm(op) => norm::batch_norm(op, io),
        Kind::BatchNormFactor(op) => norm::batch_norm_factor(op, io),
        Kind::BatchNormGrad(op) => norm::batch_norm_grad(op, io),
        Kind::BatchNormInference(op) => norm::batch_norm_inference(op, io),
        Kind::BatchNormInferenceGrad(op) => norm::batch_norm_inference_grad(op, io),
        Kind::BatchNormReluGrad(op) => norm::batch_norm_relu_grad(op, io),
        Kind::BatchNormStatistics(op) => norm::batch_norm_statistics(op, io),
        Kind::Cast(op) => copy::copied(op.name(), io[0], io[1]),
        Kind::Concat(op) => copy::concat(op, io)?,
        Kind::Conv(op) => conv::conv(op, io),
        Kind::ConvGradInput(op) => conv::grad_input(op, io),
        Kind::ConvGradWeight(op) => conv::grad_weight(op, io),
        Kind::Convert(op) => copy::converted(op.name(), io[0], io[1]),
        Kind::Copy(op) => copy::copied(op.name(), io[0], io[1]),
        Kind::Dropout(op) => random::dropout(op, io),
        Kind::DropoutGrad(op) => random::dropout_grad(op, io),
        Kind::Fill(op) => copy::fill(op, io[0])?,
        Kind::FoldBatchNorm(op) => norm::fold_batch_norm(op, io),
        Kind::Gather(op) => index::gather(op, io)?,
        Kind::GatherElements(op) => index::gather_elements(op, io)?,
        Kind::GatherElementsGrad(op) => index::gather_elements_grad(op, io)?,
        Kind::GatherGrad(op) => index::gather_grad(op, io)?,
        Kind::LayerNorm(op) => row_norm::layer_norm(op, io),
        Kind::LayerNormGrad(op) => row_norm::layer_norm_grad(op, io),
        Kind::Matmul(_) => matmul::program([io[0], io[1], io[2]]),
        Kind::MaxPool(op) => pooling::max_pool(op, io),
        Kind::MaxPoolGrad(op) => pooling::max_pool_grad(op, io),
        Kind::Normalize(op) => norm::normalize(op, io),
        Kind::Places(op) => index::places(op, io),
        Kind::Random(op) => random::draw(op, io[1]),
        Kind::Recurrent(op) => recurrent::recurrent(op, io)?,
        Kind::RecurrentGrad(op) => recurrent::recurrent_grad(op, io)?,
        Kind::Reduce(op) => reduce::program(op, io)?,
        Kind::Region(op) => return elementwise::region(op, io),
        Kind::RmsNorm(op) => row_norm::rms_norm(op, io),
        Kind::RmsNormGrad(op) => row_norm::rms_norm_grad(op, io),
        Kind::RunningAverage(op) => norm::running_average(op, io),
        Kind::Scan(op) => order::scan(op, io)?,
        Kind::Scatter(op) => index::scatter(op, io)?,
        Kind::Softmax(op) => rows::softmax(op, io)?,
        Kind::SoftmaxCrossEntropy(op) => rows::loss(op, io)?,
        Kind::SoftmaxCrossEntropyGrad(op) => rows::loss_grad(op, io)?,
        Kind::SoftmaxGrad(op) => rows::softmax_grad(op, io)?,
        Kind::Sort(op) => order::sort(op, io)?,
        Kind::TensorScatter(op) => index::tensor_scatter(op, io)?,
        Kind::Update(op) => optim::program(op, io),
        // Factorisations have results that may not exist, which only the host can tell.
        Kind::Linalg(_) | Kind::Solve(_) | Kind::TriangularSolve(_) => return Ok(None),
        // Of a processor's own layouts, of the host, and between processes.
        Kind::ExchangeFinish(_)
        | Kind::ExchangeStart(_)
        | Kind::Host(_)
        | Kind::Pack(_)
        | Kind::Packed(_) => return Ok(None),
    }))
}
