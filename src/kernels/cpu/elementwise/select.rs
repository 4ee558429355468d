//! Choosing between elements.

use std::sync::Arc;

use crate::dtype::Bool;
use crate::kernels::cpu::isa::{Isa, Least, Level};
use crate::kernels::cpu::loops::{Loop, Map3, Operand, map3};
use crate::kernels::{Kernel, Width};
use crate::ops::Meta;

/// Prepares (condition, a, b) -> a where the condition holds, b elsewhere.
pub fn select(io: &[&Meta], width: Width) -> Arc<dyn Kernel> {
    let isa = Isa::active();
    // Only bits are moved, so the size of the dtype is all that matters.
    let tile = match io[1].dtype.size() {
        1 => map3::<Bool, u8, u8, u8>(isa, Choose),
        2 => map3::<Bool, u16, u16, u16>(isa, Choose),
        4 => map3::<Bool, u32, u32, u32>(isa, Choose),
        _ => map3::<Bool, u64, u64, u64>(isa, Choose),
    };
    let operands = [0, 1, 2, 3].map(|i| Operand::plain(io[i]));
    Arc::new(Loop::new(tile, operands, width))
}

struct Choose;

impl<T: Copy> Map3<Bool, T, T, T> for Choose {
    type Reach = Least;
    #[inline(always)]
    fn at<L: Level>(&self, condition: Bool, a: T, b: T) -> T {
        if condition.get() { a } else { b }
    }
}
