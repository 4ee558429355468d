//! The meaning of each operation. An operation is data: a kind with its attributes, and the views
//! it reads and writes. One file per family; the list of families is kept here and nowhere else.

/// Implements [`Catalog`] for families with these operations.
macro_rules! catalog {
    ($($family:ident => $($name:literal)+),*) => {$(
        impl $crate::ops::Catalog for $family {
            fn names() -> Vec<&'static str> {
                vec![$($name),+]
            }
        }
    )*};
}

/// The methods of a [`Family`] whose operations work element by element.
macro_rules! element_by_element {
    () => {
        fn locality(&self) -> $crate::ops::Locality {
            $crate::ops::Locality::Element
        }

        fn any_output_strides(&self) -> bool {
            true
        }
    };
}

/// The method of a [`Family`] whose operations move or convert elements.
macro_rules! moves_only {
    () => {
        fn computes(&self) -> bool {
            false
        }
    };
}

pub mod attr;
pub mod call;
pub mod elementwise;
pub mod geometry;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;
pub use crate::view::{Meta, Metas, View};
pub use attr::{Real, Scalar};
pub use call::Call;
use serde::{Deserialize, Serialize};

/// The side effects of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effects {
    /// (input, output) pairs that share one memory: the operation updates it in place.
    pub state: &'static [(usize, usize)],
    /// The input that holds a generator's state (int64 key and position). It comes last, and the
    /// engine passes its own where the caller omits it.
    pub generator: Option<usize>,
    /// It runs user code on the host, or exchanges with other processes: such operations keep their
    /// order, and run without the device's turn.
    pub host: bool,
}

impl Effects {
    /// The outputs are functions of the inputs, with no other effects.
    pub const PURE: Effects = Effects { state: &[], generator: None, host: false };

    /// Updates inputs in place.
    pub const fn updates(state: &'static [(usize, usize)]) -> Effects {
        Effects { state, ..Effects::PURE }
    }

    /// Reaches beyond the device: user code, and exchanges with other processes.
    pub const OUTSIDE: Effects = Effects { host: true, ..Effects::PURE };

    /// Reads random numbers from the generator whose state is input `input`, the last one.
    pub const fn draws_from(input: usize) -> Effects {
        Effects { generator: Some(input), ..Effects::PURE }
    }
}

/// The cost of an operation, independent of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Floating-point operations (one for a cheap function, more for exp and the like).
    pub flops: u64,
    /// How many of them are elementwise work fused after a product or a convolution.
    pub behind: u64,
    /// Bytes read and written.
    pub bytes: u64,
}

impl Cost {
    /// So many operations on these tensors.
    pub fn of(io: &[&Meta], flops: u64) -> Cost {
        let bytes = io.iter().fold(0u64, |sum, m| sum.saturating_add(m.bytes() as u64));
        Cost { flops, behind: 0, bytes }
    }

    /// `per_element` operations for each element of the largest tensor.
    pub fn elementwise(io: &[&Meta], per_element: u64) -> Cost {
        let largest = io.iter().map(|m| m.numel()).max().unwrap_or(0);
        Cost::of(io, per_element.saturating_mul(largest as u64))
    }
}

/// The product of numbers, at most the greatest one there is: tensors that are expanded may ask for
/// more operations than can be counted.
pub fn product(numbers: &[usize]) -> u64 {
    let times = |product: u64, &n: &usize| product.saturating_mul(n as u64);
    if numbers.contains(&0) { 0 } else { numbers.iter().fold(1, times) }
}

/// Which elements of the inputs an element of an output depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Locality {
    /// Those at the same position; inputs broadcast, and an output may reuse the memory of any.
    Element,
    /// Those of the same row along the last axis, where inputs and output have one shape.
    Row,
    /// Any.
    All,
}

/// A family of operations: their meaning and their cost. Kernels are found by [`Kind`], on each
/// target by itself.
pub trait Family {
    /// The operation's name, as error messages and profiles print it.
    fn name(&self) -> &'static str;

    /// Checks the inputs and infers the outputs: shapes, dtypes, strides. Never reads data.
    fn infer(&self, inputs: &[&Meta]) -> Result<Metas>;

    /// The operation's side effects.
    fn effects(&self) -> Effects {
        Effects::PURE
    }

    /// (input, output) pairs that may share memory where both have the same meta.
    fn in_place(&self) -> &'static [(usize, usize)] {
        &[]
    }

    /// Which elements of the inputs those of the outputs depend on.
    fn locality(&self) -> Locality {
        Locality::All
    }

    /// The operations that it consists of, if they are several.
    fn region(&self) -> Option<&region::Region> {
        None
    }

    /// Whether it computes with elements: if it only moves or converts them, they may be of a type
    /// that is stored and nothing else.
    fn computes(&self) -> bool {
        true
    }

    /// Whether outputs may have strides other than those that `infer` returns.
    fn any_output_strides(&self) -> bool {
        false
    }

    /// How many 128-bit blocks of random numbers it draws; the engine then advances the generator
    /// by as many.
    fn draws(&self, _inputs: &[&Meta]) -> u64 {
        0
    }

    /// The same operation drawing random numbers from block `offset` on, counted from the
    /// generator's position, so that operations can share one position. None if it draws none.
    fn drawing_from(&self, _offset: u64) -> Option<Kind> {
        None
    }

    /// The inputs whose values decide whether it can fail; a kernel can check them by themselves.
    fn checked(&self) -> &'static [usize] {
        &[]
    }

    /// Whether its inputs' values can make it fail, also where nothing but a run can tell.
    fn may_fail(&self) -> bool {
        !self.checked().is_empty()
    }

    /// Its cost; `io` are the inputs, then the outputs.
    fn cost(&self, io: &[&Meta]) -> Cost {
        Cost::elementwise(io, 1)
    }
}

/// The names of a family's operations, for the completeness test.
pub trait Catalog {
    /// Every name that [`Family::name`] can return.
    fn names() -> Vec<&'static str>;
}

macro_rules! families {
    ($($(#[$attribute:meta])* $module:ident::$family:ident),* $(,)?) => {
        /// An operation with its attributes, which are immutable.
        #[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        #[serde(tag = "op", rename_all = "snake_case")]
        #[allow(missing_docs)]
        pub enum Kind {
            $($(#[$attribute])* $family($module::$family)),*
        }

        impl Kind {
            /// The family that defines the operation's meaning.
            pub fn family(&self) -> &dyn Family {
                match self {
                    $(Kind::$family(family) => family),*
                }
            }

            /// The names of all operations, family by family.
            pub fn names() -> Vec<&'static str> {
                [$(<$module::$family as Catalog>::names()),*].concat()
            }
        }

        $(impl From<$module::$family> for Kind {
            fn from(family: $module::$family) -> Kind {
                Kind::$family(family)
            }
        })*
    };
}

pub mod attention;
pub mod binary;
pub mod conv;
pub mod copy;
pub mod cross_entropy;
pub mod exchange;
pub mod fold;
pub mod gemm;
pub mod host;
pub mod index;
pub mod layer_norm;
pub mod linalg;
pub mod norm;
pub mod normalize;
pub mod optim;
pub mod packed;
pub mod pooling;
pub mod random;
pub mod recurrent;
pub mod reduce;
pub mod region;
pub mod rms_norm;
pub mod scan;
pub mod scatter;
pub mod select;
pub mod softmax;
pub mod sort;
pub mod tensor_scatter;
pub mod unary;

families! {
    attention::Attention, attention::AttentionGrad,
    binary::Binary, binary::BinaryScalar,
    #[serde(alias = "conv2d")] conv::Conv,
    #[serde(alias = "conv2d_grad_input")] conv::ConvGradInput,
    #[serde(alias = "conv2d_grad_weight")] conv::ConvGradWeight,
    copy::Arange, copy::Cast, copy::Concat, copy::Convert, copy::Copy, copy::Fill,
    cross_entropy::SoftmaxCrossEntropy, cross_entropy::SoftmaxCrossEntropyGrad,
    exchange::ExchangeFinish, exchange::ExchangeStart,
    fold::BatchNormFactor, fold::FoldBatchNorm,
    gemm::Matmul,
    host::Host,
    index::Gather, index::GatherElements, index::GatherElementsGrad, index::GatherGrad, index::Places,
    layer_norm::LayerNorm, layer_norm::LayerNormGrad,
    linalg::Linalg, linalg::Solve, linalg::TriangularSolve,
    norm::BatchNorm, norm::BatchNormGrad, norm::BatchNormInference, norm::BatchNormInferenceGrad,
    norm::RunningAverage,
    normalize::BatchNormReluGrad, normalize::BatchNormStatistics, normalize::Normalize,
    optim::Update,
    packed::Pack, packed::Packed,
    #[serde(alias = "avg_pool2d")] pooling::AvgPool,
    #[serde(alias = "avg_pool2d_grad")] pooling::AvgPoolGrad,
    #[serde(alias = "max_pool2d")] pooling::MaxPool,
    #[serde(alias = "max_pool2d_grad")] pooling::MaxPoolGrad,
    random::Advance, random::Dropout, random::DropoutGrad, random::Random,
    recurrent::Recurrent, recurrent::RecurrentGrad,
    reduce::Reduce,
    region::Region,
    rms_norm::RmsNorm, rms_norm::RmsNormGrad,
    scan::Scan,
    scatter::Scatter,
    select::Where,
    softmax::Softmax, softmax::SoftmaxGrad,
    sort::Sort,
    tensor_scatter::TensorScatter,
    unary::Unary, unary::UnaryGrad,
}

/// Checks that an operation's tensor has a float dtype.
///
/// # Errors
/// [`Error::DType`] where it has another one.
pub fn check_float(op: &'static str, x: &Meta) -> Result<()> {
    crate::ensure!(x.dtype.is_float(), Error::dtype(op, [x.dtype], "a float dtype"));
    Ok(())
}

/// Checks that an operation's tensors have one dtype, which is allowed.
///
/// # Errors
/// [`Error::DType`] with all dtypes.
pub fn check_dtypes(
    op: &'static str,
    inputs: &[&Meta],
    is_allowed: impl Fn(DType) -> bool,
    want: &str,
) -> Result<()> {
    let dtypes = || inputs.iter().map(|m| m.dtype);
    let fits = dtypes().all(|dtype| dtype == inputs[0].dtype && is_allowed(dtype));
    crate::ensure!(fits, Error::dtype(op, dtypes(), want));
    Ok(())
}

/// Checks that an operation's tensor, which is `what`, has this shape and dtype.
///
/// # Errors
/// [`Error::Shape`], [`Error::DType`].
pub fn check_meta(
    op: &'static str,
    what: &str,
    given: &Meta,
    dtype: DType,
    shape: &Shape,
) -> Result<()> {
    let want = || format!("{what} of shape {shape}");
    crate::ensure!(given.shape == *shape, Error::shape(op, [&given.shape], want()));
    let want = || format!("{what} of dtype {dtype}");
    crate::ensure!(given.dtype == dtype, Error::dtype(op, [given.dtype], want()));
    Ok(())
}

/// The error for elements of a type that is stored and nothing else.
pub fn only_stored(op: &'static str, dtype: DType) -> Error {
    Error::dtype(op, [dtype], "a dtype that is computed with: convert first")
}

/// The inputs as an array of fixed length.
///
/// # Errors
/// [`Error::Arity`] where there are more or fewer.
pub fn exactly<'a, const N: usize>(op: &'static str, inputs: &[&'a Meta]) -> Result<[&'a Meta; N]> {
    <[&Meta; N]>::try_from(inputs).map_err(|_| Error::arity(op, inputs.len(), N))
}

/// Two inputs, and a third one that may be left out.
///
/// # Errors
/// [`Error::Arity`] where there are more or fewer.
pub fn two_or_three<'a>(
    op: &'static str,
    inputs: &[&'a Meta],
) -> Result<(&'a Meta, &'a Meta, Option<&'a Meta>)> {
    match *inputs {
        [a, b] => Ok((a, b, None)),
        [a, b, c] => Ok((a, b, Some(c))),
        _ => Err(Error::arity(op, inputs.len(), "2 or 3")),
    }
}

#[cfg(test)]
mod tests;
