/** Buffers for activations: by name, reused from pass to pass, replaced when a larger one is needed. */
import type { BackendBuffer } from '../backend/backend';
import type { Rope } from '../models/architecture';
import { ropeTables } from '../models/rope';
import type { Queue } from './queue';

export interface Workspace {
  /** The buffer of this name, at least `byteLength` long. Its contents are whatever was last left there. */
  take(name: string, byteLength: number): BackendBuffer;
  /** The two names exchange their buffers. */
  swap(a: string, b: string): void;
  /** Cosines and sines of positions 0 … count − 1 and maybe more: [positions, dims] f32. */
  angles(rope: Rope, count: number, long: boolean): BackendBuffer;
  /** ALiBi slopes of a block's heads. */
  slopes(alibi: readonly number[]): BackendBuffer;
  close(): void;
}

/** Positions by which angle tables grow. */
const ANGLE_STEP = 512;

export function createWorkspace(queue: Queue): Workspace {
  const buffers = new Map<string, BackendBuffer>();
  const tables = new Map<string, { count: number; buffer: BackendBuffer }>();
  const take = (name: string, byteLength: number) => {
    const old = buffers.get(name);
    if (old && old.byteLength >= byteLength) return old;
    queue.free(old);
    buffers.delete(name);
    const buffer = queue.allocate(byteLength, name);
    buffers.set(name, buffer);
    return buffer;
  };
  return {
    take,
    swap(a, b) {
      const [first, second] = [buffers.get(a)!, buffers.get(b)!];
      buffers.set(a, second);
      buffers.set(b, first);
    },
    angles(rope, count, long) {
      const key = `${long} ${JSON.stringify(rope)}`;
      const old = tables.get(key);
      if (old && old.count >= count) return old.buffer;
      queue.free(old?.buffer);
      tables.delete(key);
      const positions = Math.ceil(count / ANGLE_STEP) * ANGLE_STEP;
      const { cos, sin } = ropeTables(rope, 0, positions, long);
      const half = rope.dims / 2;
      const rows = new Float32Array(positions * rope.dims);
      for (let p = 0; p < positions; p++) {
        rows.set(cos.subarray(p * half, (p + 1) * half), p * rope.dims);
        rows.set(sin.subarray(p * half, (p + 1) * half), p * rope.dims + half);
      }
      const buffer = queue.allocate(rows.byteLength, 'angles');
      queue.write(buffer, 0, rows);
      tables.set(key, { count: positions, buffer });
      return buffer;
    },
    slopes(alibi) {
      const known = buffers.get('slopes');
      if (known) return known;
      const buffer = take('slopes', alibi.length * 4);
      queue.write(buffer, 0, Float32Array.from(alibi));
      return buffer;
    },
    close() {
      for (const buffer of buffers.values()) queue.free(buffer);
      for (const { buffer } of tables.values()) queue.free(buffer);
      buffers.clear();
      tables.clear();
    },
  };
}
