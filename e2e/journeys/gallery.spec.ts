/** Examples in the studio: one click opens one of several stages, which is merged; the YAML of the form. */
import { chooseMethod, expect, merge, openSample, show, test, unfold } from './studio';

test('an example opens with one click; one of two stages merges, and leaves only its result', async ({
  page,
}) => {
  await openSample(page);
  await show(page, 'Files');
  await page.getByRole('button', { name: 'Examples' }).click();
  await expect(page.getByRole('dialog').getByRole('listitem').getByRole('button')).toHaveCount(8);
  await page.getByRole('button', { name: /^In two stages/ }).click();
  await expect(page.getByText(/1\sstage before the result: adapters \(56\stensors/)).toBeVisible();
  await merge(page);
  const outputs = await page.evaluate(async () => {
    const names: string[] = [];
    const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('outputs');
    for await (const name of root.keys()) names.push(name);
    return names;
  });
  expect(outputs).toEqual(['kitchen-harbour-workshop-slerp']);
});

test('the YAML of the form: an edit of one is an edit of the other, mistakes are marked at their line', async ({
  page,
}) => {
  await openSample(page);
  await chooseMethod(page, 'ties');
  const text = page.getByRole('textbox', { name: 'Recipe as YAML' });
  const density = page.getByRole('textbox', { name: 'density of kitchen, number' });
  const asText = () => page.getByRole('radio', { name: 'YAML' }).click();
  const asForm = async () => {
    await page.getByRole('radio', { name: 'Form' }).click();
    await unfold(page, 'kitchen');
  };
  await unfold(page, 'kitchen');
  // form → text
  await density.fill('0.35');
  await density.press('Enter');
  await asText();
  await expect(text).toHaveValue(/merge_method: ties/);
  await expect(text).toHaveValue(/density: 0.35/);
  // text → form, as it is typed, comment and all
  const yaml = await text.inputValue();
  await text.fill(`# mine\n${yaml.replace('0.35', '0.45')}`);
  await asForm();
  await expect(density).toHaveValue('0.45');
  await asText();
  await expect(text).toHaveValue(/^# mine\n/);
  // a mistake is marked, and the form shows the last readable recipe
  const wrong = `${yaml.replace('0.35', '0.55')}lambda: 1\n`;
  await text.fill(wrong);
  const line = wrong.trimEnd().split('\n').length;
  await expect(
    page.getByText(new RegExp(`Line ${line}, column 1: lambda does not belong here`)),
  ).toBeVisible();
  await expect(page.locator('li[data-tone="bad"]')).toHaveText(String(line));
  await asForm();
  await expect(density).toHaveValue('0.45');
  await asText();
  await text.fill(`${yaml}amalgam:\n  exclude: ["*.mlp.*"]\n`);
  await expect(page.locator('li[data-tone="bad"]')).toHaveCount(0);
  await show(page, 'Files');
  await expect(page.getByText(/18 of 56 tensors are left out of the merge/)).toBeVisible();
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect(text).not.toHaveValue(/exclude/);
  await page.getByRole('button', { name: 'Redo' }).click();
  await expect(page.getByText('mergekit merges these tensors too.')).toBeVisible();
  await asForm();
  await expect(density).toHaveValue('0.35');
  await expect(page.getByRole('combobox', { name: 'Merge method' })).toHaveValue('ties');
});
