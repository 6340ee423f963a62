import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: 'e2e',
  use: {
    // Pages of the sandbox have a certificate that browsers do not know.
    ignoreHTTPSErrors: true,
    // A browser that is installed already, instead of the one of Playwright.
    launchOptions: { executablePath: process.env.CHROMIUM_PATH },
  },
});
