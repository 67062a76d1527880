/** Functions of the kill test for the page; each is sent as source, and so stands alone. */

import type { AmalgamError } from '../../src/errors';
import type { Recipe } from '../../src/formats/recipe';
import type { Progress } from '../../src/reports/job';
import type { InterruptedRun, MergeReport } from '../../src/reports/merge';

export interface Attempt {
  recipe: Recipe;
  hub: string;
  models: string[];
  kind: 'downloads' | 'folder';
  name: string;
  engine: 'cpu' | 'webgpu';
  /** When `window.amalgamMoment` is called: as soon as this share of a phase is done. */
  moment?: Moment;
}

export interface Moment {
  phase: 'downloading' | 'merging';
  /** In [0, 1). */
  share: number;
}

export interface AttemptOutcome {
  shards: MergeReport['shards'];
  /** The interrupted merge that was found, if any. */
  resumed: InterruptedRun | null;
}

declare global {
  interface Window {
    /** Called when the moment of an attempt has come. */
    amalgamMoment?: () => Promise<void>;
  }
}

/**
 * Opens the models, then resumes the merge that was cut off, or begins one when there is none. A folder of the private
 * file system stands for a picked one: it has the same interface.
 */
export async function attemptMerge(wanted: Attempt): Promise<AttemptOutcome> {
  const { recipe, hub, models, kind, name, engine, moment } = wanted;
  const calls = window.amalgamCalls!;
  const found = await calls.interrupted();
  const resumed = found.find((run) => run.destination.kind === kind && run.destination.name === name) ?? null;
  await calls.setHub({ url: hub });
  let pinned = JSON.stringify(recipe);
  for (const model of models) {
    const { ref } = await calls.openHub(model);
    pinned = pinned.replaceAll(JSON.stringify(model), JSON.stringify(ref));
  }
  const root = await navigator.storage.getDirectory();
  const destination =
    kind === 'downloads'
      ? ({ kind, name } as const)
      : ({ kind, handle: await root.getDirectoryHandle('picked', { create: true }), name } as const);
  let isOver = moment === undefined;
  const follow = ({ phase, bytesDone, bytes }: Progress) => {
    if (isOver) return;
    const hasCome = phase === moment?.phase ? bytesDone >= moment.share * bytes : phase === 'merging';
    if (!hasCome) return;
    isOver = true;
    void window.amalgamMoment?.();
  };
  const request = {
    recipe: resumed?.recipe ?? (JSON.parse(pinned) as Recipe),
    engine,
    destination,
    resume: resumed !== null,
  };
  const report = await calls.merge(request, follow).catch(({ code, message }: AmalgamError) => {
    // the driver passes on only the message of an error
    throw new Error(`${code}: ${message}`);
  });
  return { shards: report.shards, resumed };
}

export interface StoredState {
  /** Whole blobs as the cache lists them, each with the sha256 of what is on the disk. */
  blobs: { sha256: string; actual: string }[];
  /**
   * Files of outputs that count as complete, and of picked folders that load: with an index, or with one file of weights
   * that has something in it, by path.
   */
  outputs: { path: string; hash: string }[];
  /** Swap files and anything else that no listing knows. */
  orphans: string[];
}

/** Reads everything that is listed as whole in this profile, and hashes it. */
export async function storedState(): Promise<StoredState> {
  const root = await navigator.storage.getDirectory();
  const sha256 = async (file: Blob) => crypto.subtle.digest('SHA-256', await file.arrayBuffer());
  const hash = async (file: Blob) =>
    [...new Uint8Array(await sha256(file))].map((b) => b.toString(16).padStart(2, '0')).join('');
  const cut = async (file: Blob, bytes: number, digest: (piece: Blob) => Promise<ArrayBuffer>) => {
    const digests: ArrayBuffer[] = [];
    for (let at = 0; at < file.size; at += bytes) digests.push(await digest(file.slice(at, at + bytes)));
    return new Blob(digests);
  };
  const piece = async (bytes: Blob) => sha256(await cut(bytes, 2 ** 18, sha256));
  const treeHash = async (file: File) => `tree2:${await hash(await cut(file, 2 ** 21, piece))}`;
  const folder = (parent: FileSystemDirectoryHandle, name: string) =>
    parent.getDirectoryHandle(name).catch(() => undefined);
  const state: StoredState = { blobs: [], outputs: [], orphans: [] };

  for await (const [sha256, blob] of (await folder(root, 'blobs'))?.entries() ?? []) {
    const files = new Map<string, FileSystemFileHandle>();
    for await (const [name, file] of (blob as FileSystemDirectoryHandle).entries())
      files.set(name, file as FileSystemFileHandle);
    const data = files.get('data');
    if (files.has('done.json') && data)
      state.blobs.push({ sha256, actual: await hash(await data.getFile()) });
    for (const name of files.keys())
      if (name.endsWith('.crswap')) state.orphans.push(`blobs/${sha256}/${name}`);
  }
  const takeAll = async (inside: FileSystemDirectoryHandle, prefix: string) => {
    for await (const [name, file] of inside.entries()) {
      if (name.endsWith('.crswap')) state.orphans.push(`${prefix}/${name}`);
      else if (file.kind === 'file')
        state.outputs.push({
          path: `${prefix}/${name}`,
          hash: await treeHash(await (file as FileSystemFileHandle).getFile()),
        });
    }
  };
  for await (const [name, output] of (await folder(root, 'outputs'))?.entries() ?? []) {
    const inside = output as FileSystemDirectoryHandle;
    const isComplete = await inside.getFileHandle('complete.json').catch(() => undefined);
    if (isComplete) await takeAll(await inside.getDirectoryHandle('files'), `outputs/${name}`);
  }
  for await (const [name, output] of (await folder(root, 'picked'))?.entries() ?? []) {
    const inside = output as FileSystemDirectoryHandle;
    for (const loaded of ['model.safetensors.index.json', 'model.safetensors']) {
      const file = await inside.getFileHandle(loaded).catch(() => undefined);
      if (file && (await file.getFile()).size > 0) await takeAll(inside, `picked/${name}`);
    }
  }
  return state;
}

/** Turns a bit in the middle of the first file of weights that has anything in it. @returns its name */
export async function damageOutput(): Promise<string | null> {
  const root = await navigator.storage.getDirectory();
  const folder = (parent: FileSystemDirectoryHandle | undefined, name: string) =>
    parent?.getDirectoryHandle(name).catch(() => undefined);
  const outputs = await folder(await folder(root, 'outputs'), 'merged');
  for (const inside of [
    await folder(outputs, 'files'),
    await folder(await folder(root, 'picked'), 'merged'),
  ]) {
    for await (const [name, handle] of inside?.entries() ?? []) {
      if (!name.endsWith('.safetensors')) continue;
      const file = await (handle as FileSystemFileHandle).getFile();
      if (file.size === 0) continue;
      const position = Math.floor(file.size / 2);
      const byte = new Uint8Array(await file.slice(position, position + 1).arrayBuffer())[0]! ^ 4;
      const stream = await (handle as FileSystemFileHandle).createWritable({ keepExistingData: true });
      await stream.write({ type: 'write', position, data: Uint8Array.of(byte) });
      await stream.close();
      return name;
    }
  }
  return null;
}
