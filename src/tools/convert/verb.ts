import { toolVerb } from '../../cli/tool-verb';
import { formatBytes, formatCounted } from '../../formats/quantity';
import { computedWords } from '../../reports/backend';
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
  print: (report, folder) => {
    const { tensors, shards, notes } = report;
    const bytes = formatBytes(shards.reduce((sum, shard) => sum + shard.bytes, 0));
    const wrote = `Wrote ${formatCounted(tensors.length, 'tensor')}, ${bytes}, ${computedWords(report)}: ${folder}`;
    return [...notes, wrote].join('\n');
  },
});
