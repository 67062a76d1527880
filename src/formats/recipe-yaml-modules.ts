/** `modules` of mergekit's recipes: the towers of a multimodal model, each with models and parameters of its own. */
import { displayName } from './names';
import type { ParameterFilter, ParameterSetting, Recipe, RecipeModel, RecipeParameters } from './recipe';
import { complain, type Field, isList, readList, readMapping, readParameters } from './recipe-yaml-nodes';
import { TOWERS, type Tower, towerOf } from './tensor-pattern';

const TREE = ['models', 'slices', 'parameters'];

/** Reads `models` or `slices` of a mapping into a recipe. */
type ReadTree = (at: Field, fields: ReadonlyMap<string, Field>, recipe: Recipe) => void;

interface Module {
  name: string;
  tower: Tower;
  models: RecipeModel[];
  parameters: RecipeParameters;
}

/**
 * Reads `modules` into a recipe. Of one module the models and parameters are the recipe's, whose own come after them
 * (mergekit's `config.py`: ConfigReader.parameter). Several become filters by the names of their tensors: a model that a
 * tower does not list has weight 0 there.
 */
export function readModules(
  field: Field,
  root: ReadonlyMap<string, Field>,
  recipe: Recipe,
  readTree: ReadTree,
  refused: ReadonlyMap<string, string>,
): void {
  const found = readMapping(field, 'any');
  if (!found) return;
  if (found.size === 0 || root.has('models') || root.has('slices')) {
    complain(
      field,
      found.size === 0 ? 'modules is empty.' : 'The recipe has modules beside models or slices.',
      'Give models or slices, or modules that have them.',
    );
    return;
  }
  const modules: Module[] = [];
  for (const [name, entry] of found) {
    const fields = readMapping(entry, TREE, { refused, ignored: new Map() });
    if (!fields) continue;
    const parameters = readParameters(fields.get('parameters'));
    if (found.size === 1) {
      for (const [key, setting] of Object.entries(parameters)) {
        const whole = recipe.parameters[key];
        recipe.parameters[key] = whole === undefined ? setting : firstOf(setting, whole);
      }
      readTree(entry, fields, recipe);
      return;
    }
    const slices = fields.get('slices');
    if (slices && isList(slices) && readList(slices)!.length > 0) {
      complain(
        slices,
        `The module ${displayName(name)} has slices beside other modules.`,
        'Stack layers of one tower in a recipe with that module alone.',
      );
      return;
    }
    const own: Recipe = { mergeMethod: recipe.mergeMethod, parameters: {}, amalgam: {} };
    readTree(entry, fields, own);
    const tower = towerOf(name);
    if (!tower) {
      complain(
        entry,
        `The module ${displayName(name)} is no tower that is known.`,
        'Name it after its tower: text_decoder, vision_tower, multi_modal_projector, audio_tower.',
      );
      return;
    }
    modules.push({ name, tower, models: own.models ?? [], parameters });
  }
  takeTowers(field, modules, recipe);
}

function takeTowers(field: Field, modules: readonly Module[], recipe: Recipe): void {
  const towers: readonly Tower[] = [...(Object.keys(TOWERS) as Tower[]), 'text'];
  const ordered = [...modules].sort((a, b) => towers.indexOf(a.tower) - towers.indexOf(b.tower));
  const twice = ordered.find(({ tower }, i) => ordered[i - 1]?.tower === tower);
  const text = ordered.at(-1);
  if (twice || text?.tower !== 'text') {
    complain(
      field,
      twice ? `modules has the ${twice.tower} tower twice.` : 'modules has no text tower.',
      twice ? 'Give each tower once.' : 'Add text_decoder: what belongs to no other tower goes with it.',
    );
    return;
  }
  /** The value that each tower has, as filters in the order in which they are looked for. */
  const together = (
    what: string,
    valueIn: (module: Module) => ParameterSetting | undefined,
  ): ParameterSetting | undefined => {
    const values = ordered.map(valueIn);
    if (values.every((value) => value === undefined)) return undefined;
    const without = ordered.find((_, i) => values[i] === undefined);
    if (without) {
      return complain(
        field,
        `${what} is given in some modules, and not in ${displayName(without.name)}.`,
        'Give it in each of the modules, or in none.',
      );
    }
    if (values.some((value) => filtersOf(value!))) {
      return complain(
        field,
        `${what} has filters in one of several modules.`,
        'Write filters in a recipe with models instead of modules.',
      );
    }
    const texts = values.map((value) => JSON.stringify(value));
    if (texts.every((one) => one === texts[0])) return values[0];
    return ordered.flatMap(({ tower }, i): ParameterFilter[] => {
      const value = values[i] as ParameterFilter['value'];
      return tower === 'text' ? [{ value }] : TOWERS[tower].map((filter) => ({ filter, value }));
    });
  };
  for (const name of new Set(modules.flatMap(({ parameters }) => Object.keys(parameters)))) {
    const whole = recipe.parameters[name];
    const setting = together(name, ({ parameters }) => parameters[name] ?? whole);
    if (setting !== undefined) recipe.parameters[name] = setting;
  }
  const inOrder = [text, ...ordered.filter((module) => module !== text)];
  const refs = new Set(inOrder.flatMap(({ models }) => models.map(({ model }) => model)));
  recipe.models = [...refs].map((ref): RecipeModel => {
    const entryIn = (module: Module) => module.models.find(({ model }) => model === ref);
    const parameters: RecipeParameters = {};
    const isEverywhere = ordered.every((module) => entryIn(module));
    const names = ordered.flatMap((module) => Object.keys(entryIn(module)?.parameters ?? {}));
    for (const name of new Set(isEverywhere ? names : [...names, 'weight'])) {
      const listed = ordered
        .map((module) => entryIn(module)?.parameters[name])
        .find((value) => value !== undefined);
      const setting = together(`${name} of ${displayName(ref)}`, (module) => {
        const entry = entryIn(module);
        if (entry) return entry.parameters[name] ?? (name === 'weight' && !isEverywhere ? 1 : undefined);
        // it counts for nothing there, whatever else it has elsewhere
        return name === 'weight' ? 0 : listed;
      });
      if (setting !== undefined) parameters[name] = setting;
    }
    return { model: ref, parameters };
  });
}

/** The first setting, and where none of its filters matches the second. */
function firstOf(first: ParameterSetting, second: ParameterSetting): ParameterSetting {
  const filters = filtersOf(first);
  return filters
    ? [...filters, ...(filtersOf(second) ?? [{ value: second as ParameterFilter['value'] }])]
    : first;
}

function filtersOf(setting: ParameterSetting): ParameterFilter[] | undefined {
  const filters = Array.isArray(setting) ? setting.filter((entry) => typeof entry === 'object') : [];
  return filters.length > 0 ? filters : undefined;
}
