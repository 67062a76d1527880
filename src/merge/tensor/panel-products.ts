/** Products of Δ with narrow matrices, on the engine. */
import type { Backend, BackendBuffer } from '../../backend/backend';
import { exact } from '../../backend/exact';
import {
  inputGram,
  inputGramForm,
  PANEL_CHUNK,
  panelProduct,
  panelProductTransposed,
} from '../../backend/kernels/products';
import { type Columns, zeroColumns } from '../../linalg/columns';

export interface MatrixShape {
  rows: number;
  cols: number;
}

/** Rows of Δ on the device: row-major f32 from word `first` on. */
export interface DeltaPanel {
  buffer: BackendBuffer;
  first: number;
  row: number;
  rows: number;
}

/** Δ as a matrix that is visited panel by panel from the top. */
export interface DeltaMatrix extends MatrixShape {
  engine: Backend;
  pass(visit: (panel: DeltaPanel) => Promise<void>): Promise<void>;
}

/** A matrix that is multiplied by narrow ones: their operands are rounded to f32, results come back in f64. */
export interface Matrix extends MatrixShape {
  /** M·X for X [cols, k]: [rows, k]. @throws what the engine and reading throw */
  times(x: Columns): Promise<Columns>;
  /** Mᵀ·Y for Y [rows, k]: [cols, k]. @throws what the engine and reading throw */
  transposedTimes(y: Columns): Promise<Columns>;
  /** The matrix itself. */
  values(): Promise<Columns>;
}

export function matrixOf(delta: DeltaMatrix): Matrix {
  const { rows, cols } = delta;
  return {
    rows,
    cols,
    times: (x) => times(delta, x),
    transposedTimes: (y) => transposedTimes(delta, y),
    values: () => readDelta(delta),
  };
}

/** Multiply-adds of one dispatch: well below a second, since drivers give up on a device that is silent for long. */
const WORK_AT_ONCE = { software: 3e8, gpu: 4e9 };

/** Δ·X for X [cols, k]: [rows, k]. @throws what the engine and reading throw */
export async function times(delta: DeltaMatrix, x: Columns): Promise<Columns> {
  const { engine, rows, cols } = delta;
  const k4 = Math.ceil(x.cols / 4);
  return withBuffers(engine, packed(x), rows * 16 * k4, async (input, output) => {
    await delta.pass((panel) =>
      inPieces(delta, panel, 4 * k4, ({ buffer, first, row, rows: count }) =>
        engine.run(panelProduct, {
          params: { first, rows: count, cols, k4, y_row: row },
          buffers: { panel: buffer, x: input, y: output },
        }),
      ),
    );
    return readColumns(engine, output, rows, x.cols);
  });
}

/** Δᵀ·Y for Y [rows, k]: [cols, k]. @throws what the engine and reading throw */
export async function transposedTimes(delta: DeltaMatrix, y: Columns): Promise<Columns> {
  const { engine, cols } = delta;
  const k4 = Math.ceil(y.cols / 4);
  return withBuffers(engine, packed(y), cols * 16 * k4, async (input, output) => {
    await delta.pass((panel) =>
      inPieces(delta, panel, 4 * k4, ({ buffer, first, row, rows }) =>
        engine.run(panelProductTransposed, {
          params: { first, rows, cols, k4, y_row: row },
          buffers: { panel: buffer, y: input, z: output },
        }),
      ),
    );
    return readColumns(engine, output, cols, y.cols);
  });
}

/** Products of columns begin … begin + width of a panel with each other, [width, width]; both multiples of 4, as are the columns of Δ. */
export async function columnProducts(
  { engine, cols }: DeltaMatrix,
  panel: DeltaPanel,
  begin: number,
  width: number,
): Promise<Float32Array> {
  const { form, side4, perGroup, rows: step } = inputGramForm(engine);
  const side = Math.ceil(width / 4 / side4);
  const tiles = (side * (side + 1)) / 2;
  const products = engine.allocate(width * width * 4, 'products of columns');
  try {
    for (let row = 0; row < panel.rows; row += step) {
      engine.run(inputGram[form], {
        params: {
          rows: Math.min(step, panel.rows - row),
          first: panel.first / cols + row,
          stride4: cols / 4,
          begin4: begin / 4,
          width4: width / 4,
          first_tile: 0,
        },
        buffers: { x: panel.buffer, s: products },
        groups: Math.ceil(tiles / perGroup),
        elements: tiles,
      });
    }
    const [bytes] = await engine.read([{ buffer: products, byteLength: products.byteLength }]);
    return new Float32Array(bytes!.buffer);
  } finally {
    engine.free(products);
  }
}

/** Δ itself, in f64. */
export async function readDelta(delta: DeltaMatrix): Promise<Columns> {
  const { rows, cols, engine } = delta;
  const out = zeroColumns(rows, cols);
  await delta.pass(async ({ buffer, first, row, rows: count }) => {
    const [bytes] = await engine.read([{ buffer, byteOffset: first * 4, byteLength: count * cols * 4 }]);
    const values = new Float32Array(bytes!.buffer);
    for (let r = 0; r < count; r++)
      for (let c = 0; c < cols; c++) out.data[c * rows + row + r] = values[r * cols + c]!;
  });
  return out;
}

/** Runs a panel in pieces of whole chunks of rows, and waits for the device between them. */
async function inPieces(
  { engine, cols }: DeltaMatrix,
  panel: DeltaPanel,
  width: number,
  run: (piece: DeltaPanel) => void,
): Promise<void> {
  const most = WORK_AT_ONCE[engine.software ? 'software' : 'gpu'] / (cols * width);
  const rows = Math.max(1, Math.floor(most / PANEL_CHUNK)) * PANEL_CHUNK;
  for (let at = 0; at < panel.rows; at += rows) {
    run({
      buffer: panel.buffer,
      first: panel.first + at * cols,
      row: panel.row + at,
      rows: Math.min(rows, panel.rows - at),
    });
    await engine.read([]);
  }
}

/** @param input is handed over to the engine @param outputBytes of a buffer of zeros */
async function withBuffers<T>(
  engine: Backend,
  input: Float32Array<ArrayBuffer>,
  outputBytes: number,
  act: (input: BackendBuffer, output: BackendBuffer) => Promise<T>,
): Promise<T> {
  const buffers: BackendBuffer[] = [];
  const make = (bytes: number) => {
    const buffer = engine.allocate(bytes, 'narrow matrix');
    buffers.push(buffer);
    return buffer;
  };
  try {
    const given = make(input.byteLength);
    engine.write(given, 0, new Uint8Array(input.buffer), true);
    return await act(given, make(outputBytes));
  } finally {
    for (const buffer of buffers) engine.free(buffer);
  }
}

/** Row after row in f32, the width padded with zeros to a multiple of 4. */
function packed({ rows, cols, data }: Columns): Float32Array<ArrayBuffer> {
  const width = Math.ceil(cols / 4) * 4;
  const out = new Float32Array(rows * width);
  for (let j = 0; j < cols; j++)
    for (let i = 0; i < rows; i++) out[i * width + j] = exact(data[j * rows + i]!);
  return out;
}

async function readColumns(
  engine: Backend,
  buffer: BackendBuffer,
  rows: number,
  cols: number,
): Promise<Columns> {
  const width = Math.ceil(cols / 4) * 4;
  const [bytes] = await engine.read([{ buffer, byteLength: rows * width * 4 }]);
  const values = new Float32Array(bytes!.buffer);
  const out = zeroColumns(rows, cols);
  for (let j = 0; j < cols; j++)
    for (let i = 0; i < rows; i++) out.data[j * rows + i] = values[i * width + j]!;
  return out;
}
