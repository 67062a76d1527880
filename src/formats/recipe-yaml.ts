/** Recipes out of YAML: mergekit's schema (its `config.py`, version 0.1.4), and our extensions under `amalgam`. */

import { Composer, type CST, type Document, isMap, Lexer, LineCounter, Parser } from 'yaml';
import { AmalgamError } from '../errors';
import { counted } from './quantity';
import type { Recipe, RecipeStage } from './recipe';
import { stagesNamed } from './recipe-models';
import { complain, type Field, type RecipeProblem, type RecipeReader } from './recipe-yaml-nodes';
import { readRecipe } from './recipe-yaml-read';

// Recipes of several documents, as mergekit-multi reads them (its `scripts/multimerge.py`): a document with a name can
// be used as a model by the others, the one without is the result.

/** One document, read without problems. */
export interface ReadDocument {
  root: Field;
  recipe: Recipe;
}

/** Names that are also folder names everywhere and cannot be taken for `path@revision+adapter`. */
const STAGE_NAME = /^[A-Za-z0-9][\w.-]{0,99}$/;

/**
 * The recipe of the document that no other uses, with the others as its stages, each after those it needs. Duplicate
 * names, circles and documents that lead to nothing become problems of their reader, and then there is no recipe.
 */
export function joinStages(documents: readonly ReadDocument[]): Recipe | undefined {
  const named = new Map<string, ReadDocument>();
  let result: ReadDocument | undefined;
  let fits = true;
  const refuse = (document: ReadDocument, message: string, hint: string) => {
    fits = false;
    complain(nameField(document), message, hint);
  };
  for (const document of documents) {
    const { name } = document.recipe;
    if (name === undefined) {
      if (result)
        refuse(document, 'Two documents have no name.', 'Give every document but the result a name.');
      result ??= document;
    } else if (!STAGE_NAME.test(name)) {
      refuse(
        document,
        'name is not one word, so no other document can use it as a model.',
        'Use letters, digits, dot, dash and underscore.',
      );
    } else if (named.has(name)) {
      refuse(document, `The name ${name} is given to two documents.`, 'Choose another name for one of them.');
    } else named.set(name, document);
  }
  if (!fits) return undefined;

  const names = new Set(named.keys());
  const needs = ({ recipe }: ReadDocument) => stagesNamed(recipe, names);
  const circle = findCircle(named, needs);
  if (circle) {
    const way = [...circle, circle[0]!].join(' → ');
    refuse(named.get(circle[0]!)!, `${circle[0]} needs itself: ${way}.`, 'Take one of these models out.');
    return undefined;
  }
  const used = new Set(documents.flatMap(needs));
  const unused = [...named.keys()].filter((name) => !used.has(name));
  // without a circle something is used by nobody: the result, if every document has a name
  result ??= unused.length === 1 ? named.get(unused[0]!)! : undefined;
  for (const name of unused) {
    if (named.get(name) === result) continue;
    refuse(
      named.get(name)!,
      result
        ? `No other document uses ${name} as a model.`
        : `${unused.join(' and ')} are used by no other document, so none of them is clearly the result.`,
      `Correct the name where it is used, take the document out, or leave out the name of the result. Names are ${[...names].join(', ')}.`,
    );
  }
  return fits && result ? { ...result.recipe, stages: inOrder(result, named, needs) } : undefined;
}

type Needs = (document: ReadDocument) => string[];

/** Everything the result needs, each after its own needs. There are no circles. */
function inOrder(
  result: ReadDocument,
  named: ReadonlyMap<string, ReadDocument>,
  needs: Needs,
): RecipeStage[] {
  const ordered = new Map<string, RecipeStage>();
  const visit = (document: ReadDocument) => {
    for (const name of needs(document)) {
      if (ordered.has(name)) continue;
      const needed = named.get(name)!;
      visit(needed);
      ordered.set(name, { ...needed.recipe, name });
    }
  };
  visit(result);
  return [...ordered.values()];
}

/** The names along a circle, or undefined. */
function findCircle(named: ReadonlyMap<string, ReadDocument>, needs: Needs): string[] | undefined {
  const clear = new Set<string>();
  const walk = (name: string, path: readonly string[]): string[] | undefined => {
    const at = path.indexOf(name);
    if (at >= 0) return path.slice(at);
    if (clear.has(name)) return undefined;
    for (const next of needs(named.get(name)!)) {
      const circle = walk(next, [...path, name]);
      if (circle) return circle;
    }
    clear.add(name);
    return undefined;
  };
  for (const name of named.keys()) {
    const circle = walk(name, []);
    if (circle) return circle;
  }
  return undefined;
}

/** Position of a document's name, or of its beginning. */
function nameField({ root }: ReadDocument): Field {
  const node = isMap(root.node) ? root.node.get('name', true) : undefined;
  return { ...root, node: node ?? root.node };
}

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
 * float32, so it only sets the output dtype, and `out_dtype` overrides it.
 */
export function parseRecipe(text: string): ParsedRecipe {
  const { read: recipe, problems } = parseYaml(text, readDocuments);
  return recipe ? { recipe, problems } : { problems };
}

/** The recipe of a text. @param title of the text @throws AmalgamError `RecipeInvalid` with its first mistake */
export function recipeOfText(title: string, text: string): Recipe {
  const { recipe, problems } = parseRecipe(text);
  if (recipe) return recipe;
  const [first] = problems;
  throw new AmalgamError(
    'RecipeInvalid',
    `${title} is not a recipe: ${first ? `line ${first.line}: ${first.message}` : 'it is empty'}`,
    first?.hint ?? 'Choose a recipe in mergekit’s YAML.',
  );
}

/** What reads the documents of a text; problems go to the list. */
type ReadDocuments<T> = (
  documents: readonly Document[],
  lines: LineCounter,
  problems: RecipeProblem[],
) => T | undefined;

/** Parses a text of plain YAML within bounds, and has it read where it is that. */
function parseYaml<T>(text: string, read: ReadDocuments<T>): { read?: T; problems: RecipeProblem[] } {
  const lines = new LineCounter();
  const fault = (message: string, hint: string) => ({ problems: [{ line: 1, column: 1, message, hint }] });
  if (text.length > MAX_RECIPE_LENGTH) {
    return fault(
      `The recipe is ${counted(text.length, 'character')} long.`,
      `At most ${MAX_RECIPE_LENGTH} are read.`,
    );
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
    // one unclosed bracket is reported once for every bracket around it
    const told = new Map(faults.map(({ pos, message }) => [`${pos[0]} ${message}`, { pos, message }]));
    const problems = [...told.values()].slice(0, MAX_PROBLEMS).map(({ pos, message }) => {
      const { line, col } = lines.linePos(pos[0]);
      return { line, column: col, message: `This is not plain YAML: ${message}.`, hint: 'Correct it here.' };
    });
    if (problems.length > 0) return { problems };
    const value = read(documents, lines, problems);
    return value !== undefined && problems.length === 0
      ? { read: value, problems }
      : { problems: problems.slice(0, MAX_PROBLEMS) };
  } catch (thrown) {
    if (thrown instanceof AmalgamError) return fault(thrown.message, thrown.hint);
    throw thrown;
  }
}

/** Parses a text of one document by a reader of its own. */
export function parseOne<T>(text: string, read: (root: Field) => T | undefined) {
  return parseYaml(text, ([document], lines, problems) => {
    const reader = { document: document!, lines, problems, nodes: 0, aliases: 0 };
    return read({ reader, node: document?.contents ?? null, at: null, where: 'The recipe' });
  });
}

/** Tokens for the composer, or undefined where the text is nested too deep. */
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
    const root: Field = { reader, node: document.contents, at: null, where: 'The recipe' };
    const recipe = readRecipe(root);
    if (recipe) read.push({ root, recipe });
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
