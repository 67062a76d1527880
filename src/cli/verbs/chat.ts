import process from 'node:process';
import { createInterface } from 'node:readline';
import { AmalgamError, errorReport } from '../../errors';
import { generateOptions } from '../../evaluate/options';
import type { Message } from '../../formats/conversations';
import { printableText } from '../../formats/names';
import type { Recipe } from '../../formats/recipe';
import { type GenerateRequest, memoryWords, type RunTarget } from '../../reports/evaluate';
import { defineVerb, engineOptions, usage } from '../arguments';
import { serveChat } from '../chat-server';
import { openTargets } from '../job';
import { recipeOf, type Steering, shortName, steeredRecipe } from '../steered-recipe';

const HELP = `/weight NAME VALUE  another weight of a contributor    /set NAME VALUE  another parameter of the method
/weight             the weights as they are            /set             the parameters
/again              the last answer once more          /new             a new conversation
/quit               the end`;

export const chatVerb = defineVerb({
  name: 'chat',
  subjects: ['model'],
  about:
    'Answers what is typed, by the chat template of the model; a recipe answers without being merged, and its weights can be changed between two answers (/help). With --serve, as an OpenAI-compatible endpoint of this machine whose requests may set them.',
  options: {
    serve: {
      kind: 'integer',
      argument: 'PORT',
      help: 'Serves on this port; 0 takes a free one.',
      min: 0,
      max: 65_535,
    },
    system: { kind: 'text', argument: 'TEXT', help: 'What the conversation begins with, as the system.' },
    text: {
      kind: 'boolean',
      help: 'What is typed is continued: for models without a chat template.',
      default: false,
    },
    ...generateOptions,
    maxTokens: { ...generateOptions.maxTokens, default: 512 },
    ...engineOptions,
  },

  check({ options: { text, system, serve } }) {
    if (text && system !== undefined) throw usage('--system is for conversations, not for --text.');
    if (serve !== undefined && (text || system !== undefined))
      throw usage('--serve takes texts and system messages from its requests.');
  },

  async run({ subjects, options }, place) {
    const { serve, system, text, maxTokens, temperature, topP, seed, weights, engine } = options;
    const { calls, targets } = await openTargets(subjects, place, options);
    const defaults = { maxTokens, temperature, topP, seed };
    const length = { maxTokens, promptTokens: PROMPT_TOKENS };
    place.say(memoryWords(await calls.memoryOf({ targets, ...length, weights, engine })));
    const generate = async (
      asked: Partial<GenerateRequest> & typeof defaults,
      steering: Steering,
      onText: (more: string) => void,
    ) => {
      const own = { target: steered(targets[0]!, steering), live: true, weights, engine };
      return calls.generate({ prompt: '', chat: false, ...asked, ...own }, ({ text: more = '' }) =>
        onText(more),
      );
    };

    if (serve !== undefined) {
      const server = await serveChat(
        {
          name: shortName(subjects[0]!).replace(/\.ya?ml$/, ''),
          defaults,
          answer: generate,
          cancel: () => calls.cancel(),
        },
        serve,
      );
      place.undo.push(() => server.close());
      place.say(`${server.url} answers (Ctrl+C ends it).`);
      return new Promise<number>(() => {});
    }

    const begin = (): Message[] => (system === undefined ? [] : [{ role: 'system', content: system }]);
    let steering: Steering = {};
    /** Warnings that were said. */
    const warned = new Set<string>();
    /** Takes other settings where the plan does, and says what they are and what has no effect. */
    const steer = async (next: Steering, words: string) => {
      const target = steered(targets[0]!, next);
      const { problems } = 'recipe' in target ? await calls.plan(target.recipe) : { problems: [] };
      const error = problems.find(({ severity }) => severity === 'error');
      if (error) throw new AmalgamError('RecipeInvalid', error.message, 'All stays as it was.');
      steering = next;
      place.say(words);
      for (const { severity, message } of problems) {
        if (severity === 'warning' && !warned.has(message)) place.say(`warning: ${message}`);
        warned.add(message);
      }
    };
    /** `kitchen = 0.3, harbour = 1` */
    const listed = (what: 'weights' | 'parameters') => {
      const { models = [], parameters } = steerable(steered(targets[0]!, steering));
      const weights = models.map(({ model, parameters: own }) => [shortName(model), own.weight] as const);
      const all = what === 'weights' ? weights : Object.entries(parameters);
      const given = all.filter(([, value]) => value !== undefined);
      const words = given.map(([name, value]) => `${name} = ${JSON.stringify(value)}`).join(', ');
      place.say(words || `The recipe sets no ${what}.`);
    };
    let messages = begin();
    let typed = '';
    const shown = (more: string) => (process.stdout.isTTY ? printableText(more) : more);
    const answer = async () => {
      const asked = text ? { prompt: typed } : { messages: [...messages, { role: 'user', content: typed }] };
      const report = await generate({ ...defaults, ...asked }, steering, (more) => {
        process.stdout.write(shown(more));
      });
      await place.write('\n');
      if (!text) messages = [...asked.messages!, { role: 'assistant', content: report.text }];
    };
    const commands: Record<string, (name: string, value: string) => void | Promise<void>> = {
      help: () => place.say(HELP),
      new() {
        messages = begin();
      },
      async again() {
        if (!text) messages = messages.slice(0, -2);
        if (typed !== '') await answer();
      },
      weight: (name, value) =>
        name === ''
          ? listed('weights')
          : steer(
              { ...steering, weights: { ...steering.weights, [name]: numberOf(value) } },
              `${name} = ${value}`,
            ),
      set: (name, value) =>
        name === ''
          ? listed('parameters')
          : steer(
              { ...steering, parameters: { ...steering.parameters, [name]: scalarOf(value) } },
              `${name} = ${value}`,
            ),
    };
    const lines = createInterface({
      input: process.stdin,
      output: process.stderr,
      prompt: '> ',
      terminal: process.stdin.isTTY,
    });
    if (process.stdin.isTTY) place.say('/help lists what can be changed; Ctrl+D ends it.');
    lines.prompt();
    for await (const line of lines) {
      const [, command, name = '', value = ''] = /^\/(\w+)(?:\s+(\S+))?(?:\s+(\S+))?\s*$/.exec(line) ?? [];
      if (command === 'quit') break;
      try {
        if (command !== undefined && Object.hasOwn(commands, command)) await commands[command]!(name, value);
        else if (command !== undefined) place.say(`There is no /${command}. /help lists what there is.`);
        else if (line.trim() !== '') {
          typed = line;
          await answer();
        }
      } catch (thrown) {
        // the conversation goes on
        const { code, message, hint } = errorReport(thrown);
        const isBare = code === 'TokenizerUnsupported' && !text;
        place.say(`${message} ${isBare ? 'With --text, what is typed is continued.' : hint}`);
      }
      lines.prompt();
    }
    lines.close();
    return 0;
  },
});

/** Tokens of a conversation, its last answer left out, for which the memory is said. */
const PROMPT_TOKENS = 1536;

/** @throws AmalgamError `Usage` for a model that has no weights to change */
function steerable(target: RunTarget): Recipe {
  const recipe = recipeOf(target);
  if (recipe) return recipe;
  throw usage('A model alone has no weights to change; a recipe has, and a model with a LoRA: base+adapter.');
}

/** @throws AmalgamError `RecipeInvalid`, and `Usage` for a model that has no weights to change */
function steered(target: RunTarget, steering: Steering): RunTarget {
  const isSteered = Object.values(steering).some((values) => values && Object.keys(values).length > 0);
  if (!isSteered) return target;
  return { recipe: steeredRecipe(steerable(target), steering) };
}

function numberOf(text: string): number {
  const value = Number(text);
  if (text !== '' && Number.isFinite(value)) return value;
  throw usage(text === '' ? 'The new value is missing.' : `${text} is no number, such as 0.5.`);
}

function scalarOf(text: string): number | boolean | string {
  if (text === 'true' || text === 'false') return text === 'true';
  return text !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
}
