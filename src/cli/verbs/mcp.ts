import { spawn } from 'node:child_process';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import adapters from '../../../docs/adapters.md?raw';
import methods from '../../../docs/methods.md?raw';
import recipes from '../../../docs/recipes.md?raw';
import { version } from '../../../package.json';
import { errorReport } from '../../errors';
import type { Option } from '../../reports/option';
import { defineVerb, flagOf, usage, type Verb } from '../arguments';
import type { ServedCalls, ServedTool } from '../mcp-server';

const PAGES = [
  { name: 'recipes', title: 'Recipes: the YAML that is merged', text: recipes },
  { name: 'methods', title: 'Merge methods and their parameters', text: methods },
  { name: 'adapters', title: 'LoRAs out of merges and out of LoRAs', text: adapters },
];

/** A line of progress: its phase comes first, or the time that is left last. It is no part of an answer, as other lines are that are said beside it. */
const PROGRESS = /^\w+ · | left$/;

/** @param verbs that become tools, whose calls are processes of their own: one that is canceled ends as by Ctrl C */
export function mcpVerb(verbs: readonly Verb[]): Verb {
  return defineVerb({
    name: 'mcp',
    subjects: [],
    about:
      'Serves plan, merge, evaluate and the others as tools of the Model Context Protocol, to the program that starts it, over standard input and output. Paths are meant from the folder it was started in.',
    options: {},
    async run(_, { workingFolder, undo }) {
      // calls under way end with the server, however it ends
      const ended = new AbortController();
      undo.push(async () => ended.abort());
      const served: ServedCalls = {
        ...{ tools: verbs.map(toolOf), pages: PAGES, version },
        call: (name, values, signal, onLine) =>
          callVerb(
            verbs.find((verb) => verb.name === name)!,
            values,
            workingFolder,
            AbortSignal.any([signal, ended.signal]),
            onLine,
          ).catch((thrown: unknown) => {
            const { message, hint } = errorReport(thrown);
            return { text: `${message}\n${hint}`, failed: true };
          }),
      };
      // bundled beside the command, which starts faster without it
      const server = new URL('./mcp-server.mjs', import.meta.url).href;
      const { serve } = (await import(/* @vite-ignore */ server)) as typeof import('../mcp-server');
      await serve(served);
      return 0;
    },
  });
}

function toolOf({ name, about, subjects, options }: Verb): ServedTool {
  const described = Object.entries(options).map(([key, option]) => [flagOf(key, option), schemaOf(option)]);
  const words = subjects.map((word) => `<${word}>`).join(' ');
  const items = { type: 'string', description: words };
  return {
    name,
    description: asArguments(about),
    inputSchema: {
      type: 'object',
      properties: {
        subjects: {
          type: 'array',
          items,
          minItems: subjects.length,
          description: `In order: ${words}; a recipe file stands for a model too`,
        },
        ...Object.fromEntries(described),
      },
      required: ['subjects'],
    },
  };
}

/** Words of the command line as those of a tool: `--gguf-only` is its argument `gguf-only`. */
function asArguments(words: string): string {
  return words.replace(/--([a-z][\w-]*)/g, '`$1`');
}

function schemaOf(option: Option): object {
  const description = asArguments(option.help);
  switch (option.kind) {
    case 'boolean':
      return { type: 'boolean', description };
    case 'choice':
      return { type: 'string', enum: option.typed ?? option.values, description };
    case 'list':
      return { type: 'array', items: { type: 'string' }, description };
    case 'text':
      return { type: 'string', description };
    default: {
      if (option.unit === 'bytes')
        return { type: 'string', description: `${description} With its unit: 20MB.` };
      const { kind, min: minimum, max: maximum } = option;
      return {
        type: kind,
        description,
        ...(minimum !== undefined && { minimum }),
        ...(maximum !== undefined && { maximum }),
      };
    }
  }
}

/** The command line that values of a tool stand for. @throws AmalgamError `Usage` for a name that is none of its options */
function lineOf(verb: Verb, { subjects, ...values }: Readonly<Record<string, unknown>>): string[] {
  const flags = new Set(Object.entries(verb.options).map(([key, option]) => flagOf(key, option)));
  const named = Array.isArray(subjects)
    ? subjects.map(String)
    : subjects === undefined
      ? []
      : [String(subjects)];
  const given = Object.entries(values).flatMap(([flag, value]) => {
    if (!flags.has(flag)) throw usage(`${verb.name} has no option ${flag}.`);
    if (typeof value === 'boolean') return value ? [`--${flag}`] : [];
    return (Array.isArray(value) ? value : [value]).map((one) => `--${flag}=${String(one)}`);
  });
  return [verb.name, ...given, '--', ...named];
}

async function callVerb(
  verb: Verb,
  values: Readonly<Record<string, unknown>>,
  cwd: string,
  signal: AbortSignal,
  onLine: (line: string) => void,
): Promise<{ text: string; failed: boolean }> {
  const child = spawn(process.execPath, [process.argv[1]!, ...lineOf(verb, values)], {
    ...{ cwd, stdio: ['ignore', 'pipe', 'pipe'] },
  });
  const stop = () => child.kill('SIGINT');
  signal.addEventListener('abort', stop);
  const exit = new Promise<number | null>((done, failed) => {
    child.once('exit', done);
    child.once('error', failed);
  });
  const said: string[] = [];
  const follow = async () => {
    for await (const line of createInterface({ input: child.stderr })) {
      if (PROGRESS.test(line)) onLine(line);
      else said.push(line);
    }
  };
  try {
    const [code, written] = await Promise.all([exit, text(child.stdout), follow()]);
    return { text: [written, ...said].join('\n').trim(), failed: code !== 0 };
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
