import process from 'node:process';
import { generateOptions } from '../../evaluate/options';
import { printableText } from '../../formats/names';
import { counted, formatBytes } from '../../formats/quantity';
import type { GenerateRequest } from '../../reports/evaluate';
import { parseOne, runOf, runOptions, usage, usageOf, type Verb } from '../arguments';
import { openTargets, type Where } from '../job';
import { reportWriter } from '../report-file';

interface GenerateCommand extends Omit<GenerateRequest, 'target'>, Omit<Where, 'engine'> {
  /** A model reference, or the path of a recipe whose merge is run without being written. */
  model: string;
  report?: string;
}

const promptOptions = {
  prompt: { kind: 'text', argument: 'TEXT', help: 'The text that is continued.' },
  chat: {
    kind: 'boolean',
    help: 'The prompt is what a user says; the model answers by its chat template.',
    default: false,
  },
} as const;

const writing = { ...promptOptions, ...generateOptions, ...runOptions };

export const generateVerb: Verb<GenerateCommand> = {
  name: 'generate',
  usage: `  generate <model> --prompt TEXT [--chat] ${usageOf(generateOptions)}
           ${usageOf(runOptions)}
      Continues a text; with --chat, answers it using the model's chat template.
`,

  options: writing,

  parse(args) {
    const { subject: model, options } = parseOne('generate', 'model', args, writing);
    const { prompt, chat, maxTokens, temperature, topP, seed } = options;
    if (prompt === undefined) throw usage('generate needs --prompt TEXT.');
    return { model, ...runOf(options), prompt, chat, maxTokens, temperature, topP, seed };
  },

  async run(command, place) {
    const { prompt, chat, maxTokens, temperature, topP, seed, engine } = command;
    const writeReport = await reportWriter(command.report, place.workingFolder);
    const { calls, targets } = await openTargets([command.model], place, command);
    // a file gets what the model wrote, a terminal what can be printed of it
    const shown = (written: string) => (process.stdout.isTTY ? printableText(written) : written);
    process.stdout.write(shown(chat ? `${prompt}\n\n` : prompt));
    const request = { target: targets[0]!, prompt, chat, maxTokens, temperature, topP, seed, engine };
    const report = await calls.generate(request, ({ text }) => process.stdout.write(shown(text ?? '')));
    await place.write('\n');
    await writeReport(report);
    const rate = `${report.tokensPerSecond.toFixed(1)} tokens/s on ${report.engine}`;
    const peak = `at most ${formatBytes(report.peakBytes)} there`;
    const ended = report.ended === 'stop' ? ', the text ended' : '';
    place.say(`${counted(report.ids.length, 'token')}, ${rate}, ${peak}${ended}`);
    return 0;
  },
};
