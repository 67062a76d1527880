/** Recipes out of YAML: mergekit's schema (its `config.py`, version 0.1.4), and our extensions under `amalgam`. */
import { Composer, type CST, type Document, Lexer, LineCounter, Parser } from 'yaml';
import { AmalgamError } from '../errors';
import type { Recipe } from './recipe';
import type { Field, RecipeProblem, RecipeReader } from './recipe-yaml-nodes';
import { readRecipe } from './recipe-yaml-read';
import { joinStages, type ReadDocument } from './recipe-yaml-stages';

export { formatRecipe } from './recipe-format';

/** Longest recipe text; a stack of a hundred slices with filters everywhere is a tenth of it. */
const MAX_RECIPE_LENGTH = 1_000_000;
/** Most documents: recipes in several steps have a handful. */
const MAX_DOCUMENTS = 100;
/** Lists and mappings inside one another: a recipe has a handful, and a parser that calls itself has a stack. */
const MAX_DEPTH = 64;
/** Problems reported at once: after that many, the rest are consequences. */
const MAX_PROBLEMS = 50;

/** A recipe, or what is wrong with its text. */
export interface ParsedRecipe {
  /** Present when there are no problems. */
  recipe?: Recipe;
  problems: RecipeProblem[];
}

/**
 * Parses a recipe; of several documents each but the result is a stage. Keys that mergekit drops unseen stay in `ignored`, and the plan names them. Whether the method and its
 * parameters exist is not checked here. `dtype` is what mergekit computes and writes; Amalgam always computes in
 * float32, so it only says what is written, and `out_dtype` overrides it.
 */
export function parseRecipe(text: string): ParsedRecipe {
  const lines = new LineCounter();
  const fault = (message: string, hint: string) => ({ problems: [{ line: 1, column: 1, message, hint }] });
  if (text.length > MAX_RECIPE_LENGTH) {
    return fault(`The recipe is ${text.length} characters long.`, `At most ${MAX_RECIPE_LENGTH} are read.`);
  }
  try {
    const tokens = readTokens(text, lines);
    if (!tokens) return fault('The recipe is nested too deep.', 'Write it in the usual form.');
    const composer = new Composer({
      schema: 'core',
      merge: false,
      prettyErrors: false,
      resolveKnownTags: false,
      // Checked by the reader: the parser compares every pair of keys.
      uniqueKeys: false,
    });
    const documents = [...composer.compose(tokens)];
    if (documents.length > MAX_DOCUMENTS) {
      return fault(`The recipe has ${documents.length} documents.`, `At most ${MAX_DOCUMENTS} are read.`);
    }
    const faults = documents.flatMap(({ errors, warnings }) => [...errors, ...warnings]);
    // one unclosed bracket is told of once for every bracket around it
    const told = new Map(faults.map(({ pos, message }) => [`${pos[0]} ${message}`, { pos, message }]));
    const problems = [...told.values()].slice(0, MAX_PROBLEMS).map(({ pos, message }) => {
      const { line, col } = lines.linePos(pos[0]);
      return { line, column: col, message: `This is not plain YAML: ${message}.`, hint: 'Correct it here.' };
    });
    if (problems.length > 0) return { problems };
    const recipe = readDocuments(documents, lines, problems);
    return recipe && problems.length === 0
      ? { recipe, problems }
      : { problems: problems.slice(0, MAX_PROBLEMS) };
  } catch (thrown) {
    if (thrown instanceof AmalgamError) return fault(thrown.message, thrown.hint);
    throw thrown;
  }
}

/** What the composer works on, or undefined where it is nested deeper than that should go. */
function readTokens(text: string, lines: LineCounter): CST.Token[] | undefined {
  const parser = new Parser(lines.addNewLine);
  const tokens: CST.Token[] = [];
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    tokens.push(...parser.next(lexeme));
    if (parser.stack.length > MAX_DEPTH) return undefined;
  }
  tokens.push(...parser.end());
  return tokens;
}

/** A line of dashes at the end begins one more document, with nothing in it. */
function readDocuments(
  documents: readonly Document[],
  lines: LineCounter,
  problems: RecipeProblem[],
): Recipe | undefined {
  const filled = documents.filter(({ contents }) => contents !== null);
  const read: ReadDocument[] = [];
  for (const document of filled) {
    const reader: RecipeReader = { document, lines, problems, nodes: 0, aliases: 0 };
    const root: Field = { node: document.contents, at: null, where: 'The recipe' };
    const recipe = readRecipe(reader, root);
    if (recipe) read.push({ reader, root, recipe });
  }
  if (filled.length > 1) return problems.length === 0 ? joinStages(read) : undefined;
  if (filled.length === 0) {
    problems.push({
      line: 1,
      column: 1,
      message: 'The recipe is not a mapping.',
      hint: 'Write “name: value” lines, beginning with merge_method.',
    });
  }
  return read[0]?.recipe;
}
