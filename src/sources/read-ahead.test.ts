import { expect, test } from 'vitest';
import { type ByteSource, bufferSource } from './byte-source';
import { AHEAD_BYTES, MOST_AHEAD, readingAhead } from './read-ahead';
import { hashedSource } from './tree-hash';

const LENGTH = 3 * AHEAD_BYTES + 100;
const file = Uint8Array.from({ length: LENGTH }, (_, i) => (i * 31 + (i >> 9)) % 251);

function counted() {
  const reads: [begin: number, end: number][] = [];
  let isReady = true;
  const source: ByteSource = {
    ...bufferSource(file),
    readNow(begin, end, into) {
      reads.push([begin, end]);
      if (isReady) into.set(file.subarray(begin, end));
      return isReady;
    },
  };
  return { reads, source, setReady: (ready: boolean) => (isReady = ready) };
}

function opened() {
  const { reads, source, setReady } = counted();
  const { readNow } = readingAhead(source);
  const bytes = (begin: number, end: number) => {
    const into = new Uint8Array(end - begin);
    return readNow!(begin, end, into) ? into : undefined;
  };
  return { reads, bytes, setReady };
}

test('small reads in a row are few reads of the file, with its bytes', () => {
  const { reads, bytes } = opened();
  const step = 1000;
  for (let at = 0; at < LENGTH; at += step) {
    const end = Math.min(at + step, LENGTH);
    expect(bytes(at, end)).toEqual(file.subarray(at, end));
  }
  expect(reads.length).toBeLessThan(7);
  expect(reads.every(([, end]) => end <= LENGTH)).toBe(true);
});

test('reads here and there, and large ones, read what they ask for', () => {
  const { reads, bytes } = opened();
  const wanted: [number, number][] = [
    [5000, 6000],
    [100, 200],
    [6000, 6000 + AHEAD_BYTES],
    [6000 + AHEAD_BYTES, 6001 + 2 * AHEAD_BYTES],
  ];
  for (const [begin, end] of wanted) expect(bytes(begin, end)).toEqual(file.subarray(begin, end));
  expect(reads).toEqual(wanted);
});

test('what takes waiting is not served, and read anew later', () => {
  const { bytes, setReady } = opened();
  bytes(0, 10);
  setReady(false);
  expect(bytes(10, 20)).toBeUndefined();
  setReady(true);
  expect(bytes(10, 20)).toEqual(file.subarray(10, 20));
  expect(bytes(20, 30)).toEqual(file.subarray(20, 30));
});

test('a file that is hashed while small tensors are read in a row is read once', () => {
  const { reads, source } = counted();
  const { readNow } = readingAhead(hashedSource(source));
  for (let at = 0; at < LENGTH; ) {
    const end = Math.min(at + 1000 + (at % 7), LENGTH);
    const into = new Uint8Array(end - at);
    expect(readNow!(at, end, into)).toBe(true);
    expect(into).toEqual(file.subarray(at, end));
    at = end;
  }
  expect(reads.reduce((sum, [begin, end]) => sum + end - begin, 0)).toBe(LENGTH);
});

test('of many files, those that were read last are in memory', () => {
  const files = Array.from({ length: MOST_AHEAD + 1 }, opened);
  for (const { bytes } of files) for (const at of [0, 10]) bytes(at, at + 10);
  const before = files.map(({ reads }) => reads.length);
  for (const { bytes } of files.toReversed()) expect(bytes(20, 30)).toEqual(file.subarray(20, 30));
  expect(files.map(({ reads }, i) => reads.length - before[i]!)).toEqual([1, ...Array(MOST_AHEAD).fill(0)]);
});

test('where more than is asked for takes waiting, what is asked for is served', () => {
  const ready = 5000;
  const { readNow } = readingAhead({
    ...bufferSource(file),
    readNow(begin, end, into) {
      if (end <= ready) into.set(file.subarray(begin, end));
      return end <= ready;
    },
  });
  const into = new Uint8Array(1000);
  const served = [0, 1, 2, 3, 4, 5].map((k) => readNow!(1000 * k, 1000 * (k + 1), into));
  expect(served).toEqual([true, true, true, true, true, false]);
  expect(into).toEqual(file.subarray(4000, 5000));
});
