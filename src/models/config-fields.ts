/** Places of a number or a switch in a config, in all its spellings. */

/**
 * A number of the config: the first of `fields` that the file has. `orElse` is the configuration class's default. An explicit
 * null in the file is an answer, too: it means that there is none, whatever `orElse` is.
 */
export interface NumberField {
  /** Dotted paths reach into objects: `rope_parameters.rope_theta`. */
  fields: readonly string[];
  /** For a file that has none of the fields; without it the field is required. */
  orElse?: number;
}

/** A switch of the config, or a fixed one. */
export type FlagField = boolean | { field: string; orElse: boolean };
