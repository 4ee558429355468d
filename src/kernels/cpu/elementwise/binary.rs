//! Functions of two tensors, or of a tensor and a scalar.

use std::sync::Arc;

use super::{looped, unary};
use crate::dtype::{Bool, DType};
use crate::error::Result;
use crate::kernels::cpu::copy;
use crate::kernels::cpu::simd::isa::{Level, Narrow};
use crate::kernels::cpu::simd::math::Float;
use crate::kernels::cpu::simd::number::{Integer, Number, Value};
use crate::kernels::cpu::strided::loops::{Loop, Map, Operand, Tile, map};
use crate::kernels::cpu::strided::scan::Scan;
use crate::kernels::{Io, Kernel, Width, checked};
use crate::ops::binary::{
    Binary, BinaryFn, BinaryScalar, Class, EasyPower, binary_rows, fault, is_partial,
};
use crate::ops::unary::{Unary, UnaryFn};
use crate::ops::{Family, Meta};

/// Prepares (a, b) -> c, broadcast.
pub fn binary(op: &Binary, io: &[&Meta], width: Width) -> Arc<dyn Kernel> {
    let made = looped(tile(op.f, io[0].dtype), io, width);
    let divisor = Divisor { f: op.f, name: op.name(), input: 1, meta: io[1] };
    // If the second operand is broadcast to no element at all, it is not checked.
    if io[2].numel() == 0 { made } else { divisor.checked(made, width) }
}

/// Prepares a -> c with a scalar as the other operand.
///
/// # Errors
/// Those of a scalar that the dtype does not represent.
pub fn binary_scalar(op: &BinaryScalar, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    if let Some(power) = op.easy_power(io[0].dtype) {
        return easy_power(power, io, width);
    }
    let [a, c] = [0, 1].map(|i| Operand::widened(io[i]));
    let scalar = scalar(op, io[0].dtype)?;
    let operands = if op.reverse { [scalar, a, c] } else { [a, scalar, c] };
    let made = Arc::new(Loop::new(tile(op.f, io[0].dtype), operands, width));
    let divisor = Divisor { f: op.f, name: op.name(), input: 0, meta: io[0] };
    Ok(if op.reverse { divisor.checked(made, width) } else { made })
}

/// Prepares a power that needs no logarithm.
fn easy_power(power: EasyPower, io: &[&Meta], width: Width) -> Result<Arc<dyn Kernel>> {
    let f = match power {
        EasyPower::Itself => return Ok(Arc::new(copy::mover(io[0], io[1], width))),
        EasyPower::Square => UnaryFn::Square,
        EasyPower::Root => UnaryFn::Sqrt,
        EasyPower::Reciprocal => UnaryFn::Reciprocal,
        EasyPower::Cube => return Ok(of_floats(Cube, io, width)),
        EasyPower::InverseRoot => return Ok(of_floats(InverseRoot, io, width)),
    };
    unary(&Unary { f }, io, width)
}

/// The loop of a function of floats.
fn of_floats<F>(f: F, io: &[&Meta], width: Width) -> Arc<dyn Kernel>
where
    F: Map<(f32,), f32> + Map<(f64,), f64>,
{
    match io[0].dtype {
        DType::Float64 => looped(map::<(f64,), f64, 2, _>(f), io, width),
        _ => looped(map::<(f32,), f32, 2, _>(f), io, width),
    }
}

#[derive(Clone, Copy)]
struct Cube;

impl<T: Float> Map<(T,), T> for Cube {
    type Reach = Narrow;
    #[inline(always)]
    fn at<L: Level>(&self, (a,): (T,)) -> T {
        a * a * a
    }
}

#[derive(Clone, Copy)]
struct InverseRoot;

impl<T: Float> Map<(T,), T> for InverseRoot {
    type Reach = Narrow;
    #[inline(always)]
    fn at<L: Level>(&self, (a,): (T,)) -> T {
        T::ONE / a.sqrt()
    }
}

/// The scalar as an operand of the type that tensors of `dtype` compute in.
fn scalar(op: &BinaryScalar, dtype: DType) -> Result<Operand> {
    Ok(match dtype {
        DType::Float16 => Operand::constant_of(op.element::<half::f16>()?.to_f32()),
        DType::BFloat16 => Operand::constant_of(op.element::<half::bf16>()?.to_f32()),
        wide => crate::dispatch!(wide, T => Operand::constant_of(op.element::<T>()?)),
    })
}

/// The tile for elements of a dtype that the function supports.
fn tile(f: BinaryFn, dtype: DType) -> Box<dyn Tile<3>> {
    let on_bools = || truths::<Bool>(f.on_booleans().unwrap_or(f));
    match f.class() {
        Class::Whole => crate::dispatch!(int dtype, T => bits::<T>(f), else => on_bools()),
        _ => crate::dispatch!(wide dtype, T => numbers::<T>(f), else => on_bools()),
    }
}

/// Turns the rows of the table into tiles.
macro_rules! tiles {
    (
        $($(#[$doc:meta])* $number:ident $class:ident $name:literal $scalar:literal
            { $a:ident, $b:ident => $value:expr } $c:literal ($($as:ident)?);)*
        ---
        $($(#[$truth_doc:meta])* $truth:ident $truth_name:literal $truth_scalar:literal
            { $x:ident, $y:ident => $holds:expr } $truth_c:literal;)*
        ---
        $($(#[$whole_doc:meta])* $whole:ident $whole_name:literal $whole_scalar:literal
            { $m:ident, $n:ident => $bits:expr } $whole_c:literal ($($whole_as:ident)?);)*
    ) => {
        /// The tile of a function's values on numbers.
        fn numbers<T: Number>(f: BinaryFn) -> Box<dyn Tile<3>> {
            match f {
                $(BinaryFn::$number => {
                    #[derive(Clone, Copy)]
                    struct Row;
                    impl<T: Number> Map<(T, T), T> for Row {
                        type Reach = T::Reach;
                        #[inline(always)]
                        fn at<L: Level>(&self, ($a, $b): (T, T)) -> T {
                            $value
                        }
                    }
                    map::<(T, T), T, 3, _>(Row)
                })*
                _ => truths::<T>(f),
            }
        }

        /// The tile of a function's values on integers.
        fn bits<T: Integer>(f: BinaryFn) -> Box<dyn Tile<3>> {
            match f {
                $(BinaryFn::$whole => {
                    #[derive(Clone, Copy)]
                    struct Row;
                    impl<T: Integer> Map<(T, T), T> for Row {
                        type Reach = T::Reach;
                        #[inline(always)]
                        fn at<L: Level>(&self, ($m, $n): (T, T)) -> T {
                            $bits
                        }
                    }
                    map::<(T, T), T, 3, _>(Row)
                })*
                _ => numbers::<T>(f),
            }
        }

        /// The tile of a function's truth values.
        fn truths<T: Value>(f: BinaryFn) -> Box<dyn Tile<3>> {
            match f {
                $(BinaryFn::$truth => {
                    #[derive(Clone, Copy)]
                    struct Row;
                    impl<T: Value> Map<(T, T), Bool> for Row {
                        type Reach = T::Reach;
                        #[inline(always)]
                        fn at<L: Level>(&self, ($x, $y): (T, T)) -> Bool {
                            ($holds).into()
                        }
                    }
                    map::<(T, T), Bool, 3, _>(Row)
                })*
                _ => unreachable!("{} has no truth values", f.name()),
            }
        }
    };
}

binary_rows!(tiles);

/// A function, and the input that is its second operand.
struct Divisor<'a> {
    f: BinaryFn,
    name: &'static str,
    input: usize,
    meta: &'a Meta,
}

impl Divisor<'_> {
    /// `kernel`, which then runs only if results are defined for every second operand.
    fn checked(self, kernel: Arc<dyn Kernel>, width: Width) -> Arc<dyn Kernel> {
        crate::dispatch!(int self.meta.dtype, T => match self.f {
            BinaryFn::Pow => self.refusing(T::lacks_power, kernel, width),
            f if is_partial(f) => self.refusing(T::lacks_quotient, kernel, width),
            _ => kernel,
        }, else => kernel)
    }

    fn refusing<T: Integer>(
        self,
        lacks: impl Fn(T) -> bool + Send + Sync + 'static,
        kernel: Arc<dyn Kernel>,
        width: Width,
    ) -> Arc<dyn Kernel> {
        let (f, name, scan) = (self.f, self.name, Scan::new(self.input, self.meta, width));
        let check = move |io: &Io| {
            let worst = scan.largest(io, |b| lacks(b) as u32)?;
            crate::ensure!(worst == 0, fault(f, name));
            Ok(())
        };
        checked(check, kernel)
    }
}
