import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CHOICES_PATH, renderChoices } from '../../codegen/choices/render-choices.ts';
import { contracts } from '../../codegen/contracts.ts';
import { findDivergences } from '../../codegen/divergences/find-divergences.ts';
import {
  DIVERGENCES_MODULE_PATH,
  DIVERGENCES_PATH,
  renderDivergences,
  renderDivergencesModule,
} from '../../codegen/divergences/render-divergences.ts';
import { generateContract } from '../../codegen/generate.ts';
import { findDrift } from '../../codegen/output.ts';
import { PAGES_PATH, renderPages } from '../../codegen/pages/render-pages.ts';
import { renderSettings, SETTINGS_PATH } from '../../codegen/render-settings.ts';

const root = join(import.meta.dirname, '../..');
const written = contracts.filter((contract) => contract.sources(root).length > 0);

test.each(written)(
  'what is generated from the contract of the $name is fresh: run `npm run generate`',
  {
    timeout: 60_000,
  },
  async (contract) => {
    const generated = await generateContract(contract, root);
    expect(findDrift(contract, root, generated)).toEqual([]);
  },
);

test('the index of choices matches the comments: run `npm run generate`', () => {
  expect(readFileSync(join(root, CHOICES_PATH), 'utf8')).toBe(renderChoices(root));
});

test('the page of settings matches the table: run `npm run generate`', () => {
  expect(readFileSync(join(root, SETTINGS_PATH), 'utf8')).toBe(renderSettings());
});

test('the pages at /docs match the guides and their script: run `npm run generate`', async () => {
  expect(readFileSync(join(root, PAGES_PATH), 'utf8')).toBe(await renderPages(root));
});

test('the page of divergences matches the code: run `npm run generate`', () => {
  const divergences = findDivergences(root);
  expect(readFileSync(join(root, DIVERGENCES_PATH), 'utf8')).toBe(renderDivergences(divergences));
  expect(readFileSync(join(root, DIVERGENCES_MODULE_PATH), 'utf8')).toBe(
    renderDivergencesModule(divergences),
  );
});
