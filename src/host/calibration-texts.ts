/** The texts that models can be calibrated on, or their token ids, by the name a recipe uses: those given in this session, and the sample's. */

import type { CalibrationText } from '../reports/importance';
import { sampleCalibrationText } from '../sources/sample';
import { SAMPLE_TEXTS } from '../sources/sample-files';

/** The calibration texts of the sample. */
export const sampleCalibrationNames: readonly string[] = SAMPLE_TEXTS.flatMap(([file]) =>
  file.endsWith('.calibration.txt') ? [file] : [],
);

export interface CalibrationTexts {
  /** Makes a text known, in place of one of the same name. */
  add(name: string, text: CalibrationText): void;
  has(name: string): boolean;
  /** The text of a known name. @throws AmalgamError what fetching the sample's throws */
  read(name: string): Promise<CalibrationText>;
}

export function calibrationTexts(): CalibrationTexts {
  const given = new Map<string, CalibrationText>();
  const isSample = (name: string) => SAMPLE_TEXTS.some(([file]) => file === name);
  return {
    add(name, text) {
      given.set(name, text);
    },
    has: (name) => given.has(name) || isSample(name),
    read: async (name) => given.get(name) ?? sampleCalibrationText(name),
  };
}
