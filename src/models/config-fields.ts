/** Where a config carries a number or a switch, in all its spellings. */

/** A number of the config: the first of `fields` that the file has. `orElse` is the configuration class's default. */
export interface NumberField {
  /** Dotted paths reach into objects: `rope_parameters.rope_theta`. */
  fields: readonly string[];
  /** For a file that has none of the fields; without it the field is required. */
  orElse?: number;
}

/** A switch of the config, or a fixed one. */
export type FlagField = boolean | { field: string; orElse: boolean };
