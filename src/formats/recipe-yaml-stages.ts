/**
 * Recipes of several documents, as mergekit-multi reads them (its `scripts/multimerge.py`): a document with a name can
 * be used as a model by the others, the one without is the result.
 */
import { isMap } from 'yaml';
import type { Recipe, RecipeStage } from './recipe';
import { stagesNamed } from './recipe-models';
import { complain, type Field, type RecipeReader } from './recipe-yaml-nodes';

/** One document, read without problems. */
export interface ReadDocument {
  reader: RecipeReader;
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
    complain(document.reader, nameField(document), message, hint);
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

/** Where the name of a document stands, or its beginning. */
function nameField({ root }: ReadDocument): Field {
  const node = isMap(root.node) ? root.node.get('name', true) : undefined;
  return { ...root, node: node ?? root.node };
}
