import { expect, test } from 'vitest';
import { courseOf } from './perplexity-course';

const blocksOf = (...losses: number[]) => losses.map((loss) => ({ loss: 64 * loss, tokens: 64 }));

test('a course is told from its first point on: a sign outside the error alone, and the error in any case', () => {
  expect(courseOf([])).toMatchObject({ value: '–', change: '', places: [] });
  const first = blocksOf(1, 1.1, 1.2, 1.3);
  expect(courseOf([first])).toMatchObject({ value: Math.exp(1.15).toFixed(2), places: [0] });
  // standard error 0.0645 nats
  expect(courseOf([first]).change).toBe(`±\u00a0${(3.182 * 0.06455 * Math.exp(1.15)).toFixed(2)}`);
  expect(courseOf([blocksOf(1)]).change).toBe('');
  // differences of −0.03 … −0.039: mean −0.0345, standard error 0.00194, and t for 3 degrees 3.18
  const lower = blocksOf(0.97, 1.067, 1.164, 1.261);
  const course = courseOf([first, lower]);
  expect(course.change.replace(/\u00a0/g, ' ')).toBe('\u22123.4 ± 0.6 %');
  expect(course.half).toBeCloseTo(3.182 * 0.001936, 3);
  expect(course.places[1]).toBeCloseTo(-0.0345, 12);
  expect(courseOf([lower, first]).change).toMatch(/^\+3\.5/);
  // 0.01 more and 0.01 less
  expect(courseOf([first, blocksOf(1.01, 1.09, 1.21, 1.29)]).change.replace(/\u00a0/g, ' ')).toBe('± 2 %');
});
