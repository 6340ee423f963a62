import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { generateContract } from '../../../codegen/generate.ts';
import { HEADER_START } from '../../../codegen/header.ts';
import { findDrift, writeOutput } from '../../../codegen/output.ts';
import { scaffoldHandlers } from '../../../codegen/scaffold-handler.ts';
import { toyContract, toyProject } from './toy-contract.ts';

test('an existing handler is never overwritten', async () => {
  using project = toyProject();
  const folder = join(project.root, 'src/handlers/toy_box');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'putToy.ts'), 'export const putToy = async () => ({});\n');
  const { operations } = await generateContract(toyContract, project.root);

  expect(scaffoldHandlers(toyContract, project.root, operations)).toEqual([
    'src/handlers/toy_box/deleteToy.ts',
  ]);
  expect(readFileSync(join(folder, 'putToy.ts'), 'utf8')).toBe('export const putToy = async () => ({});\n');
});

test('drift names every file that is absent, edited, left over or without an operation', async () => {
  using project = toyProject();
  const generated = await generateContract(toyContract, project.root);
  writeOutput(toyContract, project.root, generated);
  scaffoldHandlers(toyContract, project.root, generated.operations);
  project.edit('toys.yaml', 'description: In centimetres.', 'description: In metres.');
  writeFileSync(join(project.root, 'src/generated/errors.ts'), '');
  writeFileSync(join(project.root, 'src/generated/older.ts'), `${HEADER_START} an older contract\n`);
  writeFileSync(join(project.root, 'src/handlers/toy_box/sellToy.ts'), '');

  const edited = await generateContract(toyContract, project.root);
  expect(findDrift(toyContract, project.root, edited)).toEqual([
    'openapi/openapi.json: differs from the contract',
    'src/generated/schemas.ts: differs from the contract',
    'src/generated/errors.ts: differs from the contract',
    'src/generated/older.ts: no longer generated',
    'src/handlers/toy_box/sellToy.ts: handler without an operation',
  ]);
});

test('a generated file of an earlier contract is removed, other files are not', async () => {
  using project = toyProject();
  const generated = await generateContract(toyContract, project.root);
  writeOutput(toyContract, project.root, generated);
  const [left, own] = ['left.ts', 'own.ts'].map((name) => join(project.root, 'src/generated', name));
  writeFileSync(left!, `${HEADER_START} an older contract\n`);
  writeFileSync(own!, '// not generated\n');

  expect(writeOutput(toyContract, project.root, generated)).toEqual(['src/generated/left.ts']);
  expect(readFileSync(own!, 'utf8')).toBe('// not generated\n');
});
