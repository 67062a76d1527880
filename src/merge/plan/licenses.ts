/** What the licenses of the models and their ancestors say of an output. */
import type { ModelCardFields } from '../../formats/model-card';
import { familyLines, familyOf, licenseFindings } from '../../formats/model-family';
import type { OpenModel } from '../../inputs/opened-model';
import type { Problems } from '../../inputs/problems';

/**
 * The license that the card names: that of every input, where all have the same and none of their ancestors forbids it; with it
 * the lines of the family and of what is to be known. Findings become problems of the plan.
 * @param name of the output, where the recipe gives one
 */
export function outputLicenses(
  models: readonly OpenModel[],
  name: string | undefined,
  problems: Problems,
): { license?: string; licenses?: NonNullable<ModelCardFields['licenses']> } {
  const family = familyOf(models.map(({ folder }) => folder));
  const own = models.flatMap(({ folder }) => folder.family?.[0] ?? []);
  const findings = licenseFindings(
    family,
    own.map(({ id }) => id),
    name === undefined ? {} : { name },
  );
  for (const finding of findings) problems.add(finding);
  const known = own.filter(({ license }) => license !== undefined);
  const [license, ...others] = new Set(known.map((one) => one.license!));
  if (others.length > 0) {
    problems.warn(
      'LicensesDiffer',
      `The models have different licenses: ${known.map(({ id, license: one }) => `${id} ${one}`).join(', ')}.`,
      'Check what they allow together before you share the result; the model card names no license.',
    );
  }
  const isOne = license !== undefined && others.length === 0 && known.length === models.length;
  const isForbidden = findings.some(({ code }) => code === 'LicenseForbids' || code === 'LicenseContradicts');
  return {
    ...(isOne && !isForbidden && { license }),
    // models that come from each other alone, under licenses that ask for nothing, are all in the list of models
    ...((family.length > own.length || findings.length > 0) && {
      licenses: {
        family: familyLines(family),
        findings: findings.map(({ message }) => message),
      },
    }),
  };
}
