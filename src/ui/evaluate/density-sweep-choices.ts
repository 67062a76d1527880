/** What a sweep measures; the choices of a visit. */
export interface SweepChoices {
  /** Ids of methods; null takes the proposed ones. */
  methods: readonly string[] | null;
  /** As it is typed: `0.05, 0.1, 0.2`. */
  densities: string;
}

export const initialSweep: SweepChoices = { methods: null, densities: '0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9' };
