/** Names in a recipe that have no effect: keys that no reader knows, parameters that the method does not have. Pure. */
import { displayName, nearestName } from '../formats/names';
import { RECIPE_KEYS, type Recipe, type RecipeLevel, recipeLevels } from '../formats/recipe';
import { nameSome } from '../inputs/problems';
import type { PlanProblem } from '../reports/plan';
import type { MergeMethod } from './method';

/** A warning about names in the recipe's text. */
interface UnknownNames extends PlanProblem {
  names: readonly string[];
}

const KNOWN_KEYS: Readonly<Record<RecipeLevel['kind'], readonly string[]>> = {
  recipe: RECIPE_KEYS,
  model: ['model', 'parameters'],
  slice: ['sources', 'base_model', 'parameters'],
  source: ['model', 'parameters', 'layer_range'],
};

/** Keys that no reader of recipes knows, each with the nearest one that there is. */
export function unknownKeys(recipe: Recipe): UnknownNames[] {
  return recipeLevels(recipe).flatMap(({ kind, where, ignored = {} }) => {
    const place = kind === 'recipe' ? '' : ` ${kind === 'slice' ? 'in' : 'beside'} ${where}`;
    const warning = (names: readonly string[], remedy: string): UnknownNames => ({
      severity: 'warning',
      code: 'KeyIgnored',
      names,
      message: `mergekit ignores ${nameSome(
        names.map((name) => displayName(name)),
        12,
      )}${place}, and so does Amalgam.`,
      remedy,
    });
    const meant = Object.keys(ignored).map((name) => [name, nearestName(name, KNOWN_KEYS[kind])] as const);
    const strange = meant.flatMap(([name, nearest]) => (nearest === undefined ? [name] : []));
    return [
      ...meant.flatMap(([name, nearest]) =>
        nearest === undefined ? [] : [warning([name], `Did you mean ${nearest}?`)],
      ),
      ...(strange.length > 0
        ? [warning(strange, 'No action needed, unless it was meant to have an effect.')]
        : []),
    ];
  });
}

/** Parameters that the method does not have, or that stand where they have no effect. */
export function unknownParameters(recipe: Recipe, method: MergeMethod): UnknownNames[] {
  const takes = [...Object.keys(method.modelParameters), ...Object.keys(method.parameters)];
  return recipeLevels(recipe).flatMap(({ kind, where, parameters }) =>
    Object.keys(parameters).flatMap((name): UnknownNames[] => {
      const isGlobal = Object.hasOwn(method.parameters, name);
      const ofModel = kind === 'model' || kind === 'source';
      if (Object.hasOwn(method.modelParameters, name) || (isGlobal && !ofModel)) return [];
      const nearest = nearestName(name, takes);
      const place = kind === 'recipe' ? 'parameters' : where;
      const told = isGlobal
        ? {
            message: `${name} is a parameter of the whole merge; under ${place} it has no effect.`,
            remedy: `Move ${name} to the parameters of the recipe.`,
          }
        : {
            message: `${method.id} has no parameter ${name}: under ${place} it has no effect.`,
            remedy:
              takes.length === 0
                ? `Take ${name} out: ${method.id} has no parameters.`
                : `${nearest === undefined ? '' : `Did you mean ${nearest}? `}Its parameters are ${nameSome(takes, 12)}.`,
          };
      return [{ severity: 'warning', code: 'ParameterIgnored', names: [name], ...told }];
    }),
  );
}

type Level = Pick<RecipeLevel, 'parameters' | 'ignored'>;

/** Whether a parameter has an effect on a model, or on the whole merge. */
const hasEffect = (method: MergeMethod, name: string, ofModel: boolean) =>
  Object.hasOwn(method.modelParameters, name) || (!ofModel && Object.hasOwn(method.parameters, name));

const filtered = (parameters: Recipe['parameters'], keep: (name: string) => boolean) =>
  Object.fromEntries(Object.entries(parameters).filter(([name]) => keep(name)));

/** A recipe of one stage without the names that have no effect. */
export function withoutUnknown(recipe: Recipe, method: MergeMethod): Recipe {
  const known = <T extends Level>({ ignored: _, ...level }: T, ofModel: boolean) => ({
    ...level,
    parameters: filtered(level.parameters, (name) => hasEffect(method, name, ofModel)),
  });
  return {
    ...known(recipe, false),
    ...(recipe.models && { models: recipe.models.map((m) => known(m, true)) }),
  };
}

/** Of the recipe itself or a model in it, only the names that have no effect. */
export function onlyUnknown({ ignored, parameters }: Level, method: MergeMethod, ofModel: boolean): Level {
  return {
    ...(ignored && { ignored }),
    parameters: filtered(parameters, (name) => !hasEffect(method, name, ofModel)),
  };
}

/** Every name without effect in a recipe and its stages. */
export function unknownNames(recipe: Recipe, methods: ReadonlyMap<string, MergeMethod>): UnknownNames[] {
  return [...(recipe.stages ?? []), recipe].flatMap((part) => {
    const method = methods.get(part.mergeMethod);
    return [...unknownKeys(part), ...(method ? unknownParameters(part, method) : [])];
  });
}

/** A warning at a line of the recipe's text, counted from 1. */
interface LineWarning {
  line: number;
  message: string;
  remedy: string;
}

/** Names without effect in a recipe's text, each at the lines that have it. */
export function unknownAtLines(
  text: string,
  recipe: Recipe,
  methods: ReadonlyMap<string, MergeMethod>,
): LineWarning[] {
  const keys = text
    .split('\n')
    .map((line) => [...line.matchAll(/([^\s"':#,{}]+)["']?\s*:/g)].map(([, key]) => key!));
  return unknownNames(recipe, methods)
    .flatMap(({ names, message, remedy }) => {
      const at = keys.flatMap((inLine, i) => (inLine.some((key) => names.includes(key)) ? [i + 1] : []));
      // a key may be written in many ways
      return (at.length > 0 ? at : [1]).map((line) => ({ line, message, remedy }));
    })
    .sort((a, b) => a.line - b.line);
}
