/** Kernels of a comparison in WebAssembly: they take a whole dispatch and give the bits of their twins. */
import { difference } from '../kernels/difference';
import { panelProduct, panelProductTransposed } from '../kernels/panel-product';
import { SCRATCH, type StripKernel } from './strips';

/** By kernel id. */
export const COMPARE_KERNELS: ReadonlyMap<string, StripKernel> = new Map<string, StripKernel>([
  [
    difference.id,
    {
      rows: true,
      run(k, s) {
        const { rows, cols, a, b, out, threshold } = s.params as Record<string, number>;
        const [values, delta] = [s.at('values'), s.at('delta') + out! * 4];
        k.difference(
          values + a! * 4,
          values + b! * 4,
          rows!,
          cols!,
          threshold!,
          delta,
          s.at('sums'),
          SCRATCH,
        );
      },
    },
  ],
  [
    panelProduct.id,
    {
      rows: true,
      run(k, s) {
        const { first, rows, cols, k4, y_row } = s.params as Record<string, number>;
        const [panel, x] = [s.at('panel') + first! * 4, s.at('x')];
        const y = s.at('y') + y_row! * k4! * 16;
        k.panelProduct(panel, rows!, cols!, x, k4!, y, k.hasSmall(x, cols! * k4! * 4), SCRATCH);
      },
    },
  ],
  [
    panelProductTransposed.id,
    {
      rows: true,
      run(k, s) {
        const { first, rows, cols, k4, y_row } = s.params as Record<string, number>;
        const panel = s.at('panel') + first! * 4;
        const y = s.at('y') + y_row! * k4! * 16;
        const small = k.hasSmall(y, rows! * k4! * 4);
        k.panelProductTransposed(panel, rows!, cols!, y, k4!, s.at('z'), small, SCRATCH);
      },
    },
  ],
]);
