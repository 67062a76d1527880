import { expect, test } from './studio';

test('the built page carries the strict policy and opens without breaking it', async ({ page }) => {
  await page.goto('./');
  const policy = page.locator('meta[http-equiv="Content-Security-Policy"]');
  await expect(policy).toHaveAttribute('content', /default-src 'none'.*require-trusted-types-for 'script'/);
  await expect(page).toHaveTitle(/Amalgam/);
});
