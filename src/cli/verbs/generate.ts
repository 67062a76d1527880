import process from 'node:process';
import { generateOptions } from '../../evaluate/options';
import { printableText } from '../../formats/names';
import { counted, formatBytes } from '../../formats/quantity';
import { defineVerb, runOptions } from '../arguments';
import { openTargets } from '../job';
import { reportWriter } from '../report-file';

export const generateVerb = defineVerb({
  name: 'generate',
  subjects: ['model'],
  about: "Continues a text; with --chat, answers it using the model's chat template.",
  options: {
    prompt: { kind: 'text', argument: 'TEXT', help: 'The text that is continued.', needed: true },
    chat: {
      kind: 'boolean',
      help: 'The prompt is what a user says; the model answers by its chat template.',
      default: false,
    },
    ...generateOptions,
    ...runOptions,
  },

  async run({ subjects, options }, place) {
    const { prompt = '', chat, maxTokens, temperature, topP, seed, weights, engine } = options;
    const writeReport = await reportWriter(options.report, place.workingFolder);
    const { calls, targets } = await openTargets(subjects, place, options);
    // a file gets what the model wrote, a terminal what can be printed of it
    const shown = (written: string) => (process.stdout.isTTY ? printableText(written) : written);
    process.stdout.write(shown(chat ? `${prompt}\n\n` : prompt));
    const settings = { maxTokens, temperature, topP, seed, weights, engine };
    const request = { target: targets[0]!, prompt, chat, ...settings };
    const report = await calls.generate(request, ({ text }) => process.stdout.write(shown(text ?? '')));
    await place.write('\n');
    await writeReport(report);
    const rate = `${report.tokensPerSecond.toFixed(1)} tokens/s on ${report.engine}`;
    const peak = `at most ${formatBytes(report.peakBytes)} of its memory`;
    const ended = report.ended === 'stop' ? ', the text ended' : '';
    const kept = report.eightBits ? ', weights at 8 bits' : '';
    place.say(`${counted(report.ids.length, 'token')}, ${rate}, ${peak}${kept}${ended}`);
    return 0;
  },
});
