/** The verbs of the command, in the order of its help. */
import { TOOLS } from '../../tools';
import type { Verb } from '../arguments';
import { chatVerb } from './chat';
import { evaluateVerb } from './evaluate';
import { generateVerb } from './generate';
import { joinVerb } from './join';
import { mcpVerb } from './mcp';
import { mergeVerb } from './merge';
import { planVerb } from './plan';
import { pushVerb } from './push';
import { searchVerb } from './search';
import { verifyVerb } from './verify';

const VERB_FILES = import.meta.glob<{ verb: Verb }>('../../tools/*/verb.ts', { eager: true });
const TOOL_VERBS = TOOLS.map(({ id }) => VERB_FILES[`../../tools/${id}/verb.ts`]!.verb);

const OWN_VERBS: readonly Verb[] = [
  planVerb,
  mergeVerb,
  joinVerb,
  verifyVerb,
  evaluateVerb,
  generateVerb,
  chatVerb,
  ...TOOL_VERBS,
  searchVerb,
  pushVerb,
];

/** A conversation has no end that a tool could return. */
const SERVED = OWN_VERBS.filter((verb) => verb !== chatVerb);

export const VERBS: readonly Verb[] = [...OWN_VERBS, mcpVerb(SERVED)];
