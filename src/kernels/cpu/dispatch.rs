//! The kernel of each operation.

use std::sync::Arc;

use super::rows::norm::{forward, gradient};
use super::rows::{cross_entropy, softmax};
use crate::device::onednn::Propagation;
use crate::error::Result;
use crate::kernels::cpu::conv::convolution;
use crate::kernels::cpu::copy::{elements, gather, scatter};
use crate::kernels::cpu::elementwise::optimizers;
use crate::kernels::cpu::matmul::product;
use crate::kernels::cpu::norm::batch_norm::{self, Through};
use crate::kernels::cpu::norm::{fold, running_average};
use crate::kernels::cpu::random::dropout;
use crate::kernels::cpu::{attention, copy, cumulative, elementwise, exchange, host, linalg};
use crate::kernels::cpu::{packed, pooling, random, recurrent, reduce, region, sort};
use crate::kernels::{Kernel, Packing, Width};
use crate::ops::{Kind, Meta};

/// Prepares the kernel of an operation; `io` are the inputs, then the outputs with their actual
/// metas.
///
/// # Errors
/// Those of the kernels: what the operation's inference rejects, and those of the library.
pub fn prepare(kind: &Kind, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    match kind {
        Kind::Advance(op) => Ok(random::advance(op.by)),
        Kind::Arange(op) => copy::arange(op, io[0], width),
        Kind::Attention(op) => attention::forward(op, io, width),
        Kind::AttentionGrad(op) => attention::gradient(op, io, width),
        Kind::AvgPool(op) => pooling::average(op, io, width),
        Kind::AvgPoolGrad(op) => pooling::average_grad(op, io, width),
        Kind::BatchNorm(op) => batch_norm::forward(op.eps.0, io, width),
        Kind::BatchNormFactor(op) => fold::factor(op.eps.0, io),
        Kind::BatchNormGrad(op) => batch_norm::gradient(op.eps.0, Through::Batch, io, width),
        Kind::BatchNormInference(op) => batch_norm::inference(op.eps.0, io, width),
        Kind::BatchNormInferenceGrad(op) => {
            batch_norm::gradient(op.eps.0, Through::Constants, io, width)
        }
        Kind::BatchNormReluGrad(op) => {
            batch_norm::gradient(op.norm.eps.0, Through::Relu, io, width)
        }
        Kind::BatchNormStatistics(op) => batch_norm::statistics(op.norm.eps.0, io, width),
        Kind::Binary(op) => Ok(elementwise::binary(op, io, width)),
        Kind::BinaryScalar(op) => elementwise::binary_scalar(op, io, width),
        Kind::Cast(_) => Ok(copy::cast(io[0], io[1], width)),
        Kind::Concat(op) => copy::concat(op, io, width),
        Kind::Conv(op) => convolution::prepare(Propagation::Forward, &op.geometry, io, width),
        Kind::ConvGradInput(op) => {
            convolution::prepare(Propagation::GradInput, &op.geometry, io, width)
        }
        Kind::ConvGradWeight(op) => {
            convolution::prepare(Propagation::GradWeight, &op.geometry, io, width)
        }
        Kind::Convert(_) => Ok(copy::convert(io[0], io[1], width)),
        Kind::Copy(_) => Ok(Arc::new(copy::mover(io[0], io[1], width))),
        Kind::Dropout(op) => dropout::dropout(op, io, width),
        Kind::DropoutGrad(op) => dropout::dropout_grad(op, io, width),
        Kind::ExchangeFinish(op) => Ok(exchange::finish(op, io)),
        Kind::ExchangeStart(op) => Ok(exchange::start(op, io)),
        Kind::Fill(op) => copy::fill(op, io[0], width),
        Kind::FoldBatchNorm(op) => fold::fold(op.eps.0, op.axis, io, width),
        Kind::Gather(op) => gather::gather(op, io, width),
        Kind::GatherElements(op) => elements::gather_elements(op, io, width),
        Kind::GatherElementsGrad(op) => elements::gather_elements_grad(op, io, width),
        Kind::GatherGrad(op) => gather::gather_grad(op, io, width),
        Kind::Host(op) => Ok(host::prepare(op, io)),
        Kind::LayerNorm(op) => forward::layer_norm(op, io, width),
        Kind::LayerNormGrad(op) => gradient::layer_norm_grad(op, io, width),
        Kind::Linalg(op) => linalg::linalg(op, io, width),
        Kind::Matmul(_) => product::matmul([io[0], io[1], io[2]], width),
        Kind::MaxPool(op) => pooling::max(op, io, width),
        Kind::MaxPoolGrad(op) => pooling::max_grad(op, io, width),
        Kind::Normalize(op) => batch_norm::normalize(op.adds, op.relu, io, width),
        Kind::Pack(op) => packed::pack(op),
        Kind::Packed(op) => packed::rest(op, io, width),
        Kind::Places(op) => Ok(gather::places(op, io, width)),
        Kind::Random(op) => random::draw(op, io[1], width),
        Kind::Recurrent(op) => recurrent::recurrent(op, io, width),
        Kind::RecurrentGrad(op) => recurrent::recurrent_grad(op, io, width),
        Kind::Reduce(op) => Ok(Arc::new(reduce::reduce(op, [io[0], io[1]], width)?)),
        Kind::Region(op) => region::prepare(op, io, width),
        Kind::RmsNorm(op) => forward::rms_norm(op, io, width),
        Kind::RmsNormGrad(op) => gradient::rms_norm_grad(op, io, width),
        Kind::RunningAverage(op) => running_average::update(op.momentum.0, op.factor.0, io, width),
        Kind::Scan(op) => cumulative::scan(op, io, width),
        Kind::Scatter(op) => scatter::scatter(op, io, width),
        Kind::Softmax(op) => softmax::softmax(op, io, width),
        Kind::SoftmaxCrossEntropy(op) => cross_entropy::loss(op, io, width),
        Kind::SoftmaxCrossEntropyGrad(op) => cross_entropy::gradient(op, io, width),
        Kind::SoftmaxGrad(op) => softmax::softmax_grad(op, io, width),
        Kind::Solve(op) => linalg::solve(op, io, width),
        Kind::Sort(op) => sort::sort(op, io, width),
        Kind::TensorScatter(op) => scatter::tensor_scatter(op, io, width),
        Kind::TriangularSolve(op) => linalg::triangular(op, io, width),
        Kind::Unary(op) => elementwise::unary(op, io, width),
        Kind::UnaryGrad(op) => elementwise::unary_grad(op, io, width),
        Kind::Update(op) => optimizers::prepare(op, io, width),
        Kind::Where(_) => Ok(elementwise::select(io, width)),
    }
}

/// The same in two parts, if it is faster on an input in a packed layout. The results are
/// bit-identical.
///
/// # Errors
/// As [`prepare`].
pub fn packing(kind: &Kind, io: &[&Meta], width: Width) -> Result<Option<Packing>> {
    match kind {
        Kind::Conv(op) => convolution::packing(Propagation::Forward, &op.geometry, io, width),
        Kind::Matmul(_) => product::packing([io[0], io[1], io[2]], width),
        Kind::Recurrent(op) => recurrent::packing(op, io, width),
        Kind::Region(op) => region::packing(op, io, width),
        _ => Ok(None),
    }
}
