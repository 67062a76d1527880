import { toolVerb } from '../../cli/tool-verb';
import { displayName } from '../../formats/names';
import { formatBytes, formatCounted, formatSeconds } from '../../formats/quantity';
import { convertOptions } from './options';

export const verb = toolVerb({
  name: 'convert',
  subjects: ['model'],
  about:
    'One model in another dtype, as GGUF, or in files of another size; an adapter on its base (base+adapter) becomes one model. Without options every tensor keeps its bytes.',
  options: convertOptions,
  read: async () => undefined,
  run: (calls, { models, engine, options: form, destination }, onProgress) =>
    calls.convert({ model: models[0]!, form, engine, destination: destination! }, onProgress),
  print: ({ tensors, shards, seconds, engine, adapter, notes }, folder) => {
    const bytes = formatBytes(shards.reduce((sum, shard) => sum + shard.bytes, 0));
    const wrote = `Wrote ${formatCounted(tensors.length, 'tensor')}, ${bytes}, in ${formatSeconds(seconds)} on ${engine} (${displayName(adapter)}): ${folder}`;
    return [...notes, wrote].join('\n');
  },
});
