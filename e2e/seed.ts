import process from 'node:process';

/** Where the random cases of the tests begin: the same ones every time, or others with `SEED=7 npx vitest run`. */
export const SEED = Number(process.env.SEED ?? 20_261_121);
