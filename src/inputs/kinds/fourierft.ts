import type { AdapterKind, PartValues } from './kind';
import { firstOfPermutation, MOST_PLACES } from './torch-random';

/**
 * FourierFT (arXiv:2405.03003; PEFT tuners/fourierft/layer.py): a few coefficients of the spectrum. The real part of each
 * wave e^{2πi(um/M + vn/N)} is a product of rank 2, so the inverse transform streams as one product of rank 2n.
 */
export const fourierft: AdapterKind = {
  type: 'FOURIERFT',
  title: 'FourierFT',
  formula: 'W + s · Re ifft2(spectrum)',
  parts: ['fourierft_spectrum'],
  fields: [
    'n_frequency',
    'alpha',
    'scaling',
    'random_loc_seed',
    'n_frequency_pattern',
    'init_weights',
    'ifft2_norm',
  ],
  update({ parts, inputs, outputs, number, setting, refuse }) {
    const count = parts.fourierft_spectrum!.shape[0]!;
    const norm = setting('ifft2_norm') ?? 'backward';
    const divisor = { backward: inputs * outputs, ortho: Math.sqrt(inputs * outputs), forward: 1 }[
      String(norm)
    ];
    if (divisor === undefined) refuse(`has an ifft2_norm of ${String(norm)}`);
    if (inputs * outputs >= MOST_PLACES)
      refuse('draws its positions from a matrix too large to repeat the draw');
    const places = () => firstOfPermutation(inputs * outputs, count, number('random_loc_seed', 777));
    const rank = 2 * count;
    const wave = (frequency: number, at: number, extent: number) =>
      (2 * Math.PI * ((frequency * at) % extent)) / extent;
    return {
      form: 'product',
      rank,
      scale: number('scaling', 150) / divisor!,
      left() {
        const out = new Float32Array(outputs * rank);
        for (const [k, place] of places().entries()) {
          const u = Math.floor(place / inputs);
          for (let m = 0; m < outputs; m++) {
            out[m * rank + 2 * k] = Math.cos(wave(u, m, outputs));
            out[m * rank + 2 * k + 1] = -Math.sin(wave(u, m, outputs));
          }
        }
        return out;
      },
      right({ fourierft_spectrum }: PartValues) {
        const out = new Float32Array(rank * inputs);
        for (const [k, place] of places().entries()) {
          const [v, c] = [place % inputs, fourierft_spectrum![k]!];
          for (let n = 0; n < inputs; n++) {
            out[2 * k * inputs + n] = c * Math.cos(wave(v, n, inputs));
            out[(2 * k + 1) * inputs + n] = c * Math.sin(wave(v, n, inputs));
          }
        }
        return out;
      },
    };
  },
};
