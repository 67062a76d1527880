/** The verbs of the command, in the order of its help. */
import type { Verb } from '../verb';
import { collapseVerb } from './collapse';
import { compareVerb } from './compare';
import { evaluateVerb } from './evaluate';
import { extractLoraVerb } from './extract-lora';
import { generateVerb } from './generate';
import { importanceVerb } from './importance';
import { mergeVerb } from './merge';
import { planVerb } from './plan';
import { pushVerb } from './push';
import { searchVerb } from './search';
import { verifyVerb } from './verify';

export const VERBS: readonly Verb[] = [
  planVerb,
  mergeVerb,
  verifyVerb,
  evaluateVerb,
  generateVerb,
  compareVerb,
  extractLoraVerb,
  collapseVerb,
  importanceVerb,
  searchVerb,
  pushVerb,
];
