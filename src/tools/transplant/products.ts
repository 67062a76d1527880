/** Inner products of rows with those of a dictionary, by the engine's product of a linear layer; in f32. */
import { DTYPE_CODE } from '../../backend/kernels/encoding';
import { matmul, matmulForm, matmulPacked, PANEL, packPanels } from '../../backend/kernels/matmul';
import type { Queue } from '../../forward/queue';

/** Rows of `width` values, one after the other. */
export interface Rows {
  values: Float32Array<ArrayBuffer>;
  count: number;
  width: number;
}

export interface Products {
  /** [rows, dictionary]. @throws what the engine throws, `Canceled` */
  with(rows: Rows): Promise<Float32Array<ArrayBuffer>>;
  close(): void;
}

/** Puts a dictionary on the engine, in buffers of whole panels. Widths are padded with zeros to multiples of 4. */
export function openProducts(queue: Queue, dictionary: Rows): Products {
  const { engine } = queue;
  const { count, width } = dictionary;
  const inputs = Math.ceil(width / 4) * 4;
  const isPacked = engine.kind === 'cpu';
  const most = Math.max(PANEL, Math.floor(engine.maxBufferBytes / (inputs * 4) / PANEL) * PANEL);
  const tiles = Array.from({ length: Math.ceil(count / most) }, (_, i) => {
    const first = i * most;
    const outputs = Math.min(most, count - first);
    const weights = queue.allocateWeights(Math.ceil(outputs / PANEL) * PANEL * inputs * 4, 'dictionary');
    queue.write(weights, 0, padded(part(dictionary, first, outputs), inputs));
    if (isPacked) {
      const room = queue.allocate(PANEL * inputs * 4, 'room');
      queue.run(packPanels, {
        params: { dtype: DTYPE_CODE.F32, inputs, outputs },
        buffers: { weights, room },
      });
      queue.free(room);
    }
    return { first, outputs, weights };
  });
  const nothing = queue.allocate(16, 'nothing');
  const kernel = (isPacked ? matmulPacked : matmul[matmulForm(engine)]).F32;
  return {
    async with(rows) {
      const x = queue.allocate(rows.count * inputs * 4, 'rows');
      const y = queue.allocate(rows.count * count * 4, 'products');
      try {
        queue.write(x, 0, padded(rows, inputs));
        for (const { first, outputs, weights } of tiles) {
          for (let done = 0; done < outputs; ) {
            const limit = Math.floor(queue.workUnderWay / (rows.count * inputs) / PANEL) * PANEL;
            const some = Math.min(outputs - done, Math.max(PANEL, limit));
            const work = some * rows.count * inputs;
            await queue.breathe(work);
            const params = {
              ...{
                rows: rows.count,
                outputs: some,
                inputs4: inputs / 4,
                w_first: done,
                x_stride4: inputs / 4,
              },
              ...{ y_stride: count, y_begin: first + done, add: 0, biased: 0, scale: 1 },
            };
            queue.run(kernel, { params, buffers: { weights, x, bias: nothing, y } }, work);
            done += some;
          }
        }
        const [bytes] = await queue.read([{ buffer: y, byteLength: rows.count * count * 4 }]);
        return new Float32Array(bytes!.buffer, bytes!.byteOffset, rows.count * count);
      } finally {
        queue.free(x);
        queue.free(y);
      }
    },
    close() {
      for (const { weights } of tiles) queue.free(weights);
      queue.free(nothing);
    },
  };
}

/** Rows [first, first + count). */
export function part({ values, width }: Rows, first: number, count: number): Rows {
  return { values: values.subarray(first * width, (first + count) * width), count, width };
}

function padded({ values, count, width }: Rows, inputs: number): Float32Array<ArrayBuffer> {
  if (inputs === width) return values;
  const out = new Float32Array(count * inputs);
  for (let r = 0; r < count; r++) out.set(values.subarray(r * width, (r + 1) * width), r * inputs);
  return out;
}
