import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { HEADER_START } from '../../../codegen/document.ts';
import { generateContract } from '../../../codegen/generate.ts';
import { findDrift, writeOutput } from '../../../codegen/output.ts';
import { scaffoldHandlers, stubText } from '../../../codegen/scaffold-handler.ts';
import { toyContract, toyProject } from './toy-contract.ts';

test('a stub is appended for a missing operation, and what is there stays', async () => {
  using project = toyProject();
  const file = join(project.root, 'src/api/toy-box.ts');
  mkdirSync(dirname(file), { recursive: true });
  const own = 'export const putToy = async () => ({});\n';
  writeFileSync(file, own);
  const { operations } = await generateContract(toyContract, project.root);

  expect(scaffoldHandlers(toyContract, project.root, operations)).toEqual(['deleteToy']);
  const text = readFileSync(file, 'utf8');
  expect(text).toContain(own);
  expect(text.endsWith(stubText(operations.find(({ id }) => id === 'deleteToy')!))).toBe(true);
  expect(text).toMatch(/^import \{ notImplemented \} from '..\/errors.ts';\nimport type \{ Handler \}/);
});

test('drift names every file that is absent, edited, left over or without an operation', async () => {
  using project = toyProject();
  const generated = await generateContract(toyContract, project.root);
  writeOutput(toyContract, project.root, generated);
  scaffoldHandlers(toyContract, project.root, generated.operations);
  project.edit('toys.yaml', 'description: In centimetres.', 'description: In metres.');
  writeFileSync(join(project.root, 'src/generated/errors.ts'), '');
  writeFileSync(join(project.root, 'src/generated/older.ts'), `${HEADER_START} an older contract\n`);
  const handlers = join(project.root, 'src/api/toy-box.ts');
  writeFileSync(handlers, readFileSync(handlers, 'utf8').replace('export const putToy', 'const putToy'));

  const edited = await generateContract(toyContract, project.root);
  expect(findDrift(toyContract, project.root, edited)).toEqual([
    'openapi/openapi.json: differs from the contract',
    'src/generated/schemas.ts: differs from the contract',
    'src/generated/errors.ts: differs from the contract',
    'src/generated/older.ts: no longer generated',
    'putToy: no handler',
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
