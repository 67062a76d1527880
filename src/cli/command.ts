/** The command line: its parser and its help. */
import { displayName, orMeant } from '../formats/names';
import type { Options } from '../reports/option';
import { type Arguments, flagsOf, optionLines, usage } from './arguments';
import { VERBS } from './verbs';

/** Parsed command line: a verb and its arguments; `about`: the verb that `help` was asked for. */
interface Command {
  verb: string;
  about?: string;
  parsed?: Arguments<Options>;
}

export const USAGE = `Usage: npm run --silent amalgam -- <command> …

${VERBS.map((verb) => verb.usage).join('\n')}
  completion
      Prints a bash completion script: eval "$(amalgam completion)".

--version prints the version, --help after a command prints its arguments; --quiet hides progress.
<model> is a folder, a Hub id, or model+adapter; a recipe file in its place runs the merge without writing it.
A model in the recipe is a folder beside the recipe, else a folder in the working directory, else a Hub id.
HF_TOKEN in the environment gives access to private and gated models, HF_ENDPOINT is the hub where --hub names none.
`;

/**
 * Reads the command line (without `node` and the script).
 * @throws Usage saying which argument is wrong.
 */
export function parseCommand(args: string[]): Command {
  const [name, ...rest] = args;
  if (name === undefined) throw usage(`The command is missing. ${commandsText()}`);
  if (name === '--version') return { verb: 'version' };
  if (name === 'help') return { verb: name, ...(rest[0] === undefined ? {} : { about: rest[0] }) };
  if (args.includes('--help') || args.includes('-h')) {
    return { verb: 'help', ...(name.startsWith('-') ? {} : { about: name }) };
  }
  if (name === 'completion') return { verb: name };
  return { verb: name, parsed: verbOf(name).parse(rest) };
}

function verbOf(name: string) {
  const verb = VERBS.find((one) => one.name === name);
  if (verb) return verb;
  throw usage(`There is no command ${displayName(name)}${orMeant(name, COMMANDS)} ${commandsText()}`);
}

const COMMANDS = [...VERBS.map(({ name }) => name), 'completion'];

function commandsText(): string {
  return `Commands: ${COMMANDS.slice(0, -1).join(', ')} and ${COMMANDS.at(-1)}.`;
}

/** Usage of one verb, every form of it, and what its options do; without one the usage of all. @throws AmalgamError `Usage` */
export function helpText(about?: string): string {
  if (about === undefined || about === 'help' || about === 'completion') return USAGE;
  const verb = verbOf(about);
  return `${verb.usage}\n${optionLines(verb.options).join('\n')}\n`;
}

/** Completion for bash: verbs, then the options of the verb, else files. */
export function completionText(): string {
  const cases = VERBS.map(({ name, options }) => `    ${name}) words='${flagsOf(options).join(' ')}' ;;`);
  return `_amalgam() {
  local words='' current="\${COMP_WORDS[COMP_CWORD]}"
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
  esac
  [ "$COMP_CWORD" = 1 ] && words='${COMMANDS.join(' ')}'
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _amalgam amalgam
`;
}
