/** What the kill test asks the page to do; each function is sent to the page as it is, and so stands alone. */

import type { Recipe } from '../../src/formats/recipe';
import type { InterruptedRun, MergeReport } from '../../src/reports/merge';

export interface Attempt {
  recipe: Recipe;
  hub: string;
  models: string[];
  kind: 'downloads' | 'folder';
  name: string;
  engine: 'cpu' | 'webgpu';
  /** When `window.amalgamMoment` is called: as soon as this share of a stage is done. */
  moment?: Moment;
}

export interface Moment {
  stage: 'downloading' | 'merging';
  /** In [0, 1). */
  share: number;
}

export interface AttemptOutcome {
  shards: MergeReport['shards'];
  /** What was found to be resumed, if anything. */
  resumed: InterruptedRun | null;
}

declare global {
  interface Window {
    /** Told that the moment of an attempt has come. */
    amalgamMoment?: () => Promise<void>;
  }
}

/**
 * Opens the models, then resumes the merge that was cut off, or begins one when there is none. A folder of the private
 * file system stands for a picked one: it has the same interface.
 */
export async function attemptMerge(wanted: Attempt): Promise<AttemptOutcome> {
  const { recipe, hub, models, kind, name, engine, moment } = wanted;
  const calls = window.amalgamHeadless!;
  const unwrap = <T>(outcome: { value: T } | { error: { code: string; message: string } }): T => {
    if ('error' in outcome) throw new Error(`${outcome.error.code}: ${outcome.error.message}`);
    return outcome.value;
  };
  const found = unwrap(await calls.interrupted());
  const resumed = found.find((run) => run.destination.kind === kind && run.destination.name === name) ?? null;
  const opened = unwrap(
    await calls.open({ recipe, hub: { url: hub }, models: models.map((model) => ({ name: model })) }),
  );
  const root = await navigator.storage.getDirectory();
  const destination =
    kind === 'downloads'
      ? ({ kind, name } as const)
      : ({ kind, handle: await root.getDirectoryHandle('picked', { create: true }), name } as const);
  let isOver = moment === undefined;
  window.amalgamProgress = async (progress) => {
    if (isOver || !('bytesDone' in progress)) return;
    const { stage, bytesDone, bytes } = progress;
    const hasCome = stage === moment?.stage ? bytesDone >= moment.share * bytes : stage === 'merging';
    if (!hasCome) return;
    isOver = true;
    await window.amalgamMoment?.();
  };
  const report = unwrap(
    await calls.merge({
      recipe: resumed?.recipe ?? opened.recipe,
      engine,
      destination,
      resume: resumed !== null,
    }),
  );
  return { shards: report.shards, resumed };
}

export interface StoredFacts {
  /** Whole blobs as the cache lists them, each with the sha256 of what is on the disk. */
  blobs: { sha256: string; actual: string }[];
  /** Files of outputs that count as complete, and of picked folders that have an index, by path. */
  outputs: { path: string; sha256: string }[];
  /** Swap files and anything else that no listing knows. */
  orphans: string[];
}

/** Reads everything that is listed as whole in this profile, and hashes it. */
export async function storedFacts(): Promise<StoredFacts> {
  const root = await navigator.storage.getDirectory();
  const hash = async (file: File) =>
    [...new Uint8Array(await crypto.subtle.digest('SHA-256', await file.arrayBuffer()))]
      .map((b) => b.toString(16).padStart(2, '0'))
      .join('');
  const folder = (parent: FileSystemDirectoryHandle, name: string) =>
    parent.getDirectoryHandle(name).catch(() => undefined);
  const facts: StoredFacts = { blobs: [], outputs: [], orphans: [] };

  for await (const [sha256, blob] of (await folder(root, 'blobs'))?.entries() ?? []) {
    const files = new Map<string, FileSystemFileHandle>();
    for await (const [name, file] of (blob as FileSystemDirectoryHandle).entries())
      files.set(name, file as FileSystemFileHandle);
    const data = files.get('data');
    if (files.has('done.json') && data)
      facts.blobs.push({ sha256, actual: await hash(await data.getFile()) });
    for (const name of files.keys())
      if (name.endsWith('.crswap')) facts.orphans.push(`blobs/${sha256}/${name}`);
  }
  const takeAll = async (inside: FileSystemDirectoryHandle, prefix: string) => {
    for await (const [name, file] of inside.entries()) {
      if (name.endsWith('.crswap')) facts.orphans.push(`${prefix}/${name}`);
      else if (file.kind === 'file')
        facts.outputs.push({
          path: `${prefix}/${name}`,
          sha256: await hash(await (file as FileSystemFileHandle).getFile()),
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
    const index = await inside.getFileHandle('model.safetensors.index.json').catch(() => undefined);
    if (index && (await index.getFile()).size > 0) await takeAll(inside, `picked/${name}`);
  }
  return facts;
}
