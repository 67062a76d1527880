import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { readTensors, type Tensors } from '../merge-in-node';

/** The folder with the reference material, as `check-golden.mjs` found it. */
export const reference: string = process.env.AMALGAM_GOLDEN!;
export const real = join(reference, 'golden/real');

export function readText(...path: string[]): string {
  return readFileSync(join(...path), 'utf8');
}

export function readBytes(...path: string[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(readFileSync(join(...path)));
}

export function readFile(...path: string[]): Tensors {
  return readTensors(readBytes(...path), path.at(-1)!);
}

/** The token ids of a file of little-endian 16-bit numbers. */
export function readIds(...path: string[]): number[] {
  return [...new Uint16Array(readBytes(...path).buffer)];
}
