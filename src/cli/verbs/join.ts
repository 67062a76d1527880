import { copyFile, link, rm, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { AmalgamError } from '../../errors';
import { bytesOfHex } from '../../formats/hashes';
import { displayName } from '../../formats/names';
import { HASHES_FILE, hashesText, type OutputHashes, parseHashes } from '../../formats/output-hashes';
import { PART_FILE } from '../../formats/output-part';
import { counted } from '../../formats/quantity';
import { type Leaf, TREE_PIECE_BYTES, treeHash } from '../../sources/tree-hash';
import { checkWritten, isAsWritten } from '../../write/output-commit';
import { defineVerb } from '../arguments';
import { diskFolder, listFolder } from '../folder-listing';
import { openOutput } from '../output-folder';
import { type FoundPart, findParts, requireSameRun } from '../output-parts';
import { cleanPartials, lookAtTarget } from '../partial-output';
import { writtenText } from '../verify-text';

export const joinVerb = defineVerb({
  name: 'join',
  subjects: ['DIR'],
  about:
    'Makes the output DIR of its parts, which merge wrote beside it: hashes every file, and sees that all parts are there, of one merge, and have read the same inputs. The result has the bytes of one process; the folders of the parts go.',
  options: {},

  async run({ subjects: [named = ''] }, place) {
    const whole = resolve(place.workingFolder, named);
    const parts = await findParts(whole);
    requireAll(parts, whole);
    const files = new Map<string, { from: string; hash: string }>();
    const hashes: OutputHashes[] = [];
    for (const { folder } of parts) {
      const own = await checkedPart(folder);
      hashes.push(own);
      for (const [path, hash] of Object.entries(own.outputs)) {
        if (path === PART_FILE) continue;
        const other = files.get(path);
        if (other && other.hash !== hash) throw otherBytes(path, folder, other.from);
        files.set(path, { from: other?.from ?? folder, hash });
      }
    }
    const inputs = await inputHashes(parts, hashes);
    const { folder, output } = await openOutput(named, place);
    const written: { path: string; size: number }[] = [];
    for (const [path, { from }] of files) {
      const location = await output.begin(path, 0);
      await rm(location);
      // nothing is written twice where both are on one disk
      await link(join(from, path), location).catch(() => copyFile(join(from, path), location));
      written.push({ path, size: (await stat(location)).size });
    }
    const outputs = Object.fromEntries([...files].map(([path, { hash }]) => [path, hash]));
    const text = hashesText(inputs, outputs);
    await writeFile(await output.begin(HASHES_FILE, 0), text);
    await output.commit([...written, { path: HASHES_FILE, size: Buffer.byteLength(text) }]);
    for (const part of parts) {
      // one that lost against another process at the same part goes too
      await cleanPartials((await lookAtTarget(part.folder)).stems, true);
      await rm(part.folder, { recursive: true, force: true });
    }
    await place.write(`${counted(parts.length, 'part')} joined in ${displayName(folder)}.\n`);
    return 0;
  },
});

/** @throws NotFound naming the parts that are missing, RunChanged where one is of another merge */
function requireAll(parts: readonly FoundPart[], whole: string): void {
  const first = parts[0]?.record;
  if (!first) {
    throw new AmalgamError(
      'NotFound',
      `There is no finished part of ${displayName(whole)}.`,
      `Write them first, each of n by amalgam merge recipe.yml --out ${displayName(whole)} --part i/n; a merge in one needs no join.`,
    );
  }
  requireSameRun(parts, first);
  for (const { folder, record } of parts) {
    if (record.engine === first.engine) continue;
    throw new AmalgamError(
      'RunChanged',
      `${displayName(folder)} was computed by ${record.engine}, and the first part by ${first.engine}: their last bits may differ.`,
      'Remove one of them and merge that part again, with the same --engine as the others.',
    );
  }
  const there = new Set(parts.map(({ record }) => record.index));
  const missing = Array.from({ length: first.of }, (_, i) => i + 1).filter((index) => !there.has(index));
  if (missing.length === 0) return;
  throw new AmalgamError(
    'NotFound',
    `${missing.length === 1 ? 'Part' : 'Parts'} ${missing.join(', ')} of ${first.of} ${missing.length === 1 ? 'is' : 'are'} not there.`,
    `Merge them with --part and --resume: what was interrupted goes on. Then join again.`,
  );
}

/** Hashes of a part's files, once they are found to be those that were written. @throws IntegrityError */
async function checkedPart(folder: string): Promise<OutputHashes> {
  const { files } = diskFolder(folder, (await listFolder(folder)).files.values());
  const written = await checkWritten(files);
  const list = files.find(({ path }) => path === HASHES_FILE)?.open();
  if (!written || !list || !isAsWritten(written)) {
    throw new AmalgamError(
      'IntegrityError',
      `${displayName(folder)} is not as it was written.${written ? ` ${writtenText(written)}` : ''}`,
      'Remove that folder and merge the part again.',
    );
  }
  return parseHashes(new TextDecoder().decode(await list.read(0, list.byteLength)));
}

/** Hashes of all inputs: those known to any part, and those that follow from the pieces that each has read. */
async function inputHashes(
  parts: readonly FoundPart[],
  hashes: readonly OutputHashes[],
): Promise<Record<string, string>> {
  const found = new Map<string, string>();
  for (const [i, { inputs }] of hashes.entries()) {
    for (const [name, hash] of Object.entries(inputs)) {
      if ((found.get(name) ?? hash) !== hash) throw otherBytes(name, parts[i]!.folder, parts[0]!.folder);
      found.set(name, hash);
    }
  }
  const leaves = new Map<string, { byteLength: number; of: Map<number, { sha256: string; from: string }> }>();
  for (const { folder, record } of parts) {
    for (const [name, { byteLength, pieces }] of Object.entries(record.inputs)) {
      const known = leaves.get(name) ?? { byteLength, of: new Map() };
      leaves.set(name, known);
      const first = known.of.values().next().value;
      if (known.byteLength !== byteLength) throw otherBytes(name, folder, first?.from ?? folder);
      for (const [piece, sha256] of pieces) {
        const other = known.of.get(piece);
        if (other && other.sha256 !== sha256) throw otherBytes(name, folder, other.from);
        known.of.set(piece, { sha256, from: folder });
      }
    }
  }
  for (const [name, { byteLength, of }] of leaves) {
    const all = Array.from({ length: Math.ceil(byteLength / TREE_PIECE_BYTES) }, (_, piece): Leaf => {
      const sha256 = of.get(piece)?.sha256;
      if (sha256 === undefined) throw unread(name);
      return bytesOfHex(sha256);
    });
    found.set(name, await treeHash(all));
  }
  return Object.fromEntries(found);
}

function otherBytes(name: string, folder: string, other: string): AmalgamError {
  return new AmalgamError(
    'RunChanged',
    `${displayName(name)} is not the same in ${displayName(folder)} and ${displayName(other)}: it was changed between the parts, or differs between machines.`,
    'Give all parts the same files, remove the folder that has others, and merge that part again.',
  );
}

function unread(name: string): AmalgamError {
  return new AmalgamError(
    'IntegrityError',
    `The parts do not say what all of ${displayName(name)} was.`,
    'Remove the folders of the parts and merge them again.',
  );
}
