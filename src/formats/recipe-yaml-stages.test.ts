import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { formatRecipe } from './recipe-format';
import { parseRecipe } from './recipe-yaml';

const document = (name: string | null, ...models: string[]) =>
  [
    ...(name === null ? [] : [`name: ${name}`]),
    'merge_method: linear',
    'models:',
    ...models.map((model) => `  - {model: ${model}, parameters: {weight: 1}}`),
    '',
  ].join('\n');
const recipe = (...documents: string[]) => documents.join('---\n');

describe('recipes of several documents', () => {
  test('the document without a name is the result, the others stand in the order they are needed', () => {
    const text = recipe(
      document(null, 'second', 'third'),
      document('second', 'first', 'c'),
      document('first', 'a', 'b'),
      document('third', 'first+lora', 'd'),
    );
    const { recipe: parsed, problems } = parseRecipe(text);
    expect(problems).toEqual([]);
    expect(parsed?.name).toBeUndefined();
    expect(parsed?.stages?.map((stage) => stage.name)).toEqual(['first', 'second', 'third']);
    expect(parsed?.models?.map((m) => m.model)).toEqual(['second', 'third']);
  });

  test('where all have names the one that no other uses is the result', () => {
    const { recipe: parsed } = parseRecipe(recipe(document('first', 'a'), document('second', 'first')));
    expect(parsed?.name).toBe('second');
    expect(parsed?.stages?.map((stage) => stage.name)).toEqual(['first']);
  });

  test('YAML → recipe → YAML → recipe is stable, and mergekit-multi finds its documents', () => {
    const text = recipe(
      document('first', 'a', 'b'),
      document('second', 'first'),
      document(null, 'second', 'first'),
    );
    const parsed = parseRecipe(text).recipe!;
    const written = formatRecipe(parsed);
    expect(parseRecipe(written)).toEqual({ recipe: parsed, problems: [] });
    expect(formatRecipe(parseRecipe(written).recipe!)).toBe(written);
    const names = parseAllDocuments(written).map((d) => (d.toJS() as { name?: string }).name);
    expect(names).toEqual(['first', 'second', undefined]);
  });

  test('dashes at the end begin nothing', () => {
    expect(parseRecipe(`${document(null, 'a')}---\n`).recipe?.stages).toBeUndefined();
  });

  test.each<[string, string, number, RegExp]>([
    [
      'two without a name',
      recipe(document(null, 'a'), document(null, 'b')),
      5,
      /^Two documents have no name/,
    ],
    [
      'a name twice',
      recipe(document('x', 'a'), document('x', 'b'), document(null, 'x')),
      6,
      /^The name x is given to two documents/,
    ],
    ['a name that is no word', recipe(document('a/b', 'a'), document(null, 'c')), 1, /^name is not one word/],
    [
      'a circle',
      recipe(document('x', 'y'), document('y', 'z'), document('z', 'x'), document(null, 'x')),
      1,
      /^x needs itself: x → y → z → x\.$/,
    ],
    ['itself', recipe(document('x', 'x'), document(null, 'x')), 1, /^x needs itself: x → x\.$/],
    [
      'a name that nobody uses, such as a misspelled one',
      recipe(document('first', 'a'), document(null, 'frist', 'b')),
      1,
      /^No other document uses first as a model/,
    ],
    [
      'two results',
      recipe(document('x', 'a'), document('y', 'b')),
      1,
      /^x and y are used by no other document/,
    ],
    [
      'a fault inside a document',
      recipe(document('x', 'a'), `${document(null, 'x')}lambda: 1\n`),
      9,
      /^lambda/,
    ],
  ])('%s', (_, text, line, message) => {
    const { recipe: parsed, problems } = parseRecipe(text);
    expect(parsed).toBeUndefined();
    expect(problems[0]).toMatchObject({
      line,
      message: expect.stringMatching(message) as string,
      hint: expect.stringMatching(/\w/) as string,
    });
  });

  test('many documents are refused', () => {
    const text = recipe(...Array.from({ length: 101 }, (_, i) => document(`n${i}`, 'a')));
    expect(parseRecipe(text).problems[0]?.message).toMatch(/101 documents/);
  });
});
