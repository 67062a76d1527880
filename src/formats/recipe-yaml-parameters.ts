/** Parameters of a recipe read from a YAML tree: scalars, gradients and filters (mergekit's `config.py`, version 0.1.4). */
import type { ParameterFilter, ParameterSetting, RecipeParameters } from './recipe';
import {
  complain,
  type Field,
  isList,
  isMapping,
  need,
  type RecipeReader,
  readList,
  readMapping,
  readNumber,
  readText,
} from './recipe-yaml-nodes';

const IN_FILTER = new Map([['pattern', 'Write “filter:”, which is part of a tensor’s name.']]);

/** Parameters by name; a name that is absent has no entry. */
export function readParameters(reader: RecipeReader, field: Field | undefined): RecipeParameters {
  const parameters: RecipeParameters = {};
  for (const [name, setting] of (field && readMapping(reader, field, 'any')) ?? []) {
    const value = readSetting(reader, setting);
    if (!/^[a-z]\w*$/i.test(name)) {
      complain(
        reader,
        { ...setting, node: setting.at },
        `${setting.where} is not a parameter’s name.`,
        'Names are words such as weight.',
      );
    } else if (value !== undefined) parameters[name] = value;
  }
  return parameters;
}

function readSetting(reader: RecipeReader, field: Field): ParameterSetting | undefined {
  if (isMapping(reader, field)) {
    return complain(
      reader,
      field,
      `${field.where} is a mapping.`,
      'Filters stand in a list: “- filter: …”, “  value: …”.',
    );
  }
  if (!isList(reader, field)) return readNumber(reader, field);
  const items = readList(reader, field)!;
  if (items.length > 0 && items.every((item) => isMapping(reader, item))) {
    const filters = items.map((item) => readFilter(reader, item));
    return filters.includes(undefined) ? undefined : (filters as ParameterFilter[]);
  }
  return readGradient(reader, field, items);
}

function readGradient(reader: RecipeReader, field: Field, items: Field[]): number[] | undefined {
  const values = items.map((item) =>
    isMapping(reader, item) || isList(reader, item) ? undefined : readNumber(reader, item),
  );
  const points = values.map((value) => (typeof value === 'boolean' ? Number(value) : value));
  if (points.length > 0 && points.every((value) => typeof value === 'number')) return points;
  return complain(
    reader,
    field,
    `${field.where} is a list of something other than numbers or filters.`,
    'A gradient is a list of numbers, [0, 0.5, 1]; filters are a list of mappings with value and filter.',
  );
}

function readFilter(reader: RecipeReader, item: Field): ParameterFilter | undefined {
  const fields = readMapping(reader, item, ['filter', 'value'], { refused: IN_FILTER });
  const valueField = fields && need(reader, fields, item, 'value');
  if (!fields || !valueField) return undefined;
  const value = isList(reader, valueField)
    ? readGradient(reader, valueField, readList(reader, valueField)!)
    : readNumber(reader, valueField);
  const filterField = fields.get('filter');
  const filter = filterField && readText(reader, filterField);
  if (value === undefined || (filterField && filter === undefined)) return undefined;
  return filter === undefined ? { value } : { filter, value };
}
