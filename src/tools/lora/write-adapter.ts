/** An adapter in memory written to its destination. */
import type { ReadTensor } from '../../inputs/stored-tensor';
import type { Destination, WrittenShard } from '../../write/destination';
import { writeWhole } from '../../write/output-commit';
import { partWriter, ShardWriter } from '../../write/shard-writer';
import { type AdapterFile, readEntry } from './adapter-file';
import type { ExtractLoraReport } from './report';

/** Whole tensors are copied in pieces of this size. */
const COPY_BYTES = 8 * 2 ** 20;

/** Writes small files by their names, and the weights last. */
export async function writeAdapter(
  destination: Destination,
  file: AdapterFile,
  texts: Readonly<Record<string, string>>,
  read: ReadTensor,
): Promise<ExtractLoraReport['files'] & [WrittenShard, ...unknown[]]> {
  const small = Object.entries(texts);
  for (const [path, text] of small) await writeWhole(destination, path, text);
  const weights = await writeWeights(file, destination, read);
  return [
    weights,
    ...small.map(([path, text]) => ({ file: path, bytes: new TextEncoder().encode(text).length })),
  ];
}

async function writeWeights(
  file: AdapterFile,
  destination: Destination,
  read: ReadTensor,
): Promise<WrittenShard> {
  const writer = await ShardWriter.open(destination, file.plan);
  const part = partWriter(writer.written, (bytes, at) => writer.write(bytes, at));
  try {
    for (const entry of file.entries) {
      // factors are made anew at each read, so they go out whole; copies may be large
      const piece = typeof entry.content === 'function' ? entry.byteLength : COPY_BYTES;
      for (let begin = 0; begin < entry.byteLength; begin += piece) {
        await part.append(await readEntry(entry, begin, Math.min(begin + piece, entry.byteLength), read));
      }
    }
    await writer.take(await part.finish(), file.entries.length);
    return await writer.finish();
  } catch (error) {
    writer.abort();
    throw error;
  }
}
