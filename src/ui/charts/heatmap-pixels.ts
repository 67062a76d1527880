/**
 * Boxes set pixel by pixel. Hundreds of paths a chart cost a step of a slider more than all else that it does; rows of
 * equal boxes are runs of equal words.
 */

/** A picture to put on a canvas: a word a pixel, red in the lowest byte (every machine that runs this is little-endian). */
export interface Pixels {
  image: ImageData;
  words: Uint32Array;
  width: number;
}

/** Device pixels: left and top belong to a box, right and bottom do not. */
export interface Edges {
  top: number;
  bottom: number;
}

/** An empty picture; `old` where its size fits. */
export function emptyPixels(width: number, height: number, old: Pixels | null): Pixels {
  if (old?.width === width && old.image.height === height) {
    old.words.fill(0);
    return old;
  }
  const image = new ImageData(width, height);
  return { image, words: new Uint32Array(image.data.buffer), width };
}

/** How much of the pixels at a rounded corner is covered, for the upper left one; whole pixels are left out. */
export type Corner = readonly { x: number; y: number; covered: number }[];

/** @param radius device pixels */
export function corner(radius: number): Corner {
  const FINE = 8;
  const side = Math.ceil(radius);
  const pixels: { x: number; y: number; covered: number }[] = [];
  for (let i = 0; i < side * side; i++) {
    const [x, y] = [i % side, Math.floor(i / side)];
    let inside = 0;
    for (let j = 0; j < FINE * FINE; j++) {
      const across = radius - x - ((j % FINE) + 0.5) / FINE;
      const down = radius - y - (Math.floor(j / FINE) + 0.5) / FINE;
      if (across <= 0 || down <= 0 || Math.hypot(across, down) <= radius) inside++;
    }
    const covered = inside / FINE ** 2;
    if (covered < 1) pixels.push({ x, y, covered });
  }
  return pixels;
}

/** Fills boxes of one row: `boxes` holds left, right and word of each. */
export function fillRow(
  { words, width }: Pixels,
  { top, bottom }: Edges,
  boxes: readonly number[],
  rounded: Corner,
): void {
  const start = top * width;
  for (let b = 0; b < boxes.length; b += 3)
    words.fill(boxes[b + 2]!, start + boxes[b]!, start + boxes[b + 1]!);
  if (boxes.length === 0) return;
  const [from, to] = [start + boxes[0]!, start + boxes.at(-2)!];
  for (let y = 1; y < bottom - top; y++) words.copyWithin(from + y * width, from, to);
  for (const { x, y, covered } of rounded) {
    const upper = start + y * width;
    const lower = (bottom - 1 - y) * width;
    for (let b = 0; b < boxes.length; b += 3) {
      const word = boxes[b + 2]!;
      const edge = (word & 0xffffff) | (Math.round((word >>> 24) * covered) << 24);
      const [left, right] = [boxes[b]! + x, boxes[b + 1]! - 1 - x];
      words[upper + left] = edge;
      words[upper + right] = edge;
      words[lower + left] = edge;
      words[lower + right] = edge;
    }
  }
}

const known = new Map<string, number>();
const MOST_KNOWN = 4096;

/** The word of a color: `#440154`, or `rgb(…)` and `rgba(…)` as style sheets and scales write them. */
export function wordOf(color: string): number {
  const found = known.get(color);
  if (found !== undefined) return found;
  const [r = 0, g = 0, b = 0, alpha = 1] = channels(color);
  const word = (r | (g << 8) | (b << 16) | (Math.round(alpha * 255) << 24)) >>> 0;
  if (known.size >= MOST_KNOWN) known.clear();
  known.set(color, word);
  return word;
}

function channels(color: string): number[] {
  return color.startsWith('#')
    ? [1, 3, 5].map((i) => Number.parseInt(color.slice(i, i + 2), 16))
    : (color.match(/\d+(\.\d+)?/g) ?? []).map(Number);
}
