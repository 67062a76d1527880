import { parseArgs } from 'node:util';
import type { EngineChoice } from '../compute/engine';
import { AmalgamError } from '../errors';

/** What the command line asks for. Paths are as typed. */
export type Command =
  | { verb: 'help' }
  | { verb: 'plan'; recipe: string; hub?: string; json: boolean }
  | { verb: 'merge'; recipe: string; hub?: string; out: string; engine: EngineChoice; report?: string };

export const USAGE = `Usage: npm run --silent amalgam -- <verb> …

  plan <recipe.yml> [--json] [--hub URL]
      Reads headers only and says what a merge would do. Exit code 1 when the recipe does not fit the models.

  merge <recipe.yml> --out DIR [--engine auto|webgpu|cpu] [--report FILE.json] [--hub URL]
      Merges into DIR, which must not exist or be empty. --report writes every tensor's statistics.

A model in the recipe is a folder beside the recipe, else a folder in the working directory, else a Hub id.
HF_TOKEN in the environment gives access to private and gated models. CHROMIUM_PATH chooses the browser.
`;

const ENGINES: readonly string[] = ['auto', 'webgpu', 'cpu'] satisfies EngineChoice[];

/**
 * Reads the command line (without `node` and the script).
 * @throws Usage saying which argument is wrong.
 */
export function parseCommand(args: string[]): Command {
  const [verb, ...rest] = args;
  if (verb === undefined) throw usage('A verb is missing; there are plan and merge.');
  if (verb === 'help' || args.includes('--help') || args.includes('-h')) return { verb: 'help' };
  switch (verb) {
    case 'plan': {
      const { recipe, options } = parse(verb, rest, { json: { type: 'boolean' }, hub: { type: 'string' } });
      return { verb, recipe, json: options.json === true, ...hubOption(options.hub) };
    }
    case 'merge': {
      const { recipe, options } = parse(verb, rest, {
        out: { type: 'string' },
        engine: { type: 'string' },
        report: { type: 'string' },
        hub: { type: 'string' },
      });
      const { out, engine = 'auto', report } = options;
      if (typeof out !== 'string' || out === '') throw usage('merge needs --out DIR, the folder to write.');
      if (!isEngine(engine)) throw usage(`--engine is ${String(engine)}; it is one of auto, webgpu and cpu.`);
      return {
        verb,
        recipe,
        out,
        engine,
        ...(typeof report === 'string' ? { report } : {}),
        ...hubOption(options.hub),
      };
    }
    default:
      throw usage(`There is no verb ${verb}; there are plan and merge.`);
  }
}

type Options = Record<string, { type: 'string' | 'boolean' }>;

function parse(verb: string, args: string[], options: Options) {
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({ args, options, allowPositionals: true, strict: true });
  } catch (thrown) {
    throw usage(`${verb}: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
  }
  const [recipe, ...more] = parsed.positionals;
  if (recipe === undefined) throw usage(`${verb} needs a recipe file.`);
  if (more.length > 0) throw usage(`${verb} takes one recipe file; ${more.join(' ')} is too much.`);
  return { recipe, options: parsed.values };
}

function hubOption(hub: unknown): { hub?: string } {
  if (typeof hub !== 'string') return {};
  if (!URL.canParse(hub) || !/^https?:$/.test(new URL(hub).protocol)) {
    throw usage(`--hub is ${hub}; it is an address such as https://huggingface.co.`);
  }
  return { hub };
}

function isEngine(name: unknown): name is EngineChoice {
  return typeof name === 'string' && ENGINES.includes(name);
}

function usage(message: string): AmalgamError {
  return new AmalgamError('Usage', message, 'Run it with --help to see how it is used.');
}
