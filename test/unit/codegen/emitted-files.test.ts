import { join } from 'node:path';
import { expect, test } from 'vitest';
import { generateContract } from '../../../codegen/generate.ts';
import { findDrift, writeOutput } from '../../../codegen/output.ts';
import { scaffoldHandlers, stubText } from '../../../codegen/scaffold-handler.ts';
import { toyContract, toyProject } from './toy-contract.ts';

using project = toyProject();
const generated = await generateContract(toyContract, project.root);

const readable = [
  'openapi/openapi.json',
  'src/generated/schemas.ts',
  'src/generated/operations.ts',
  'src/generated/definition.ts',
  'src/generated/registry.ts',
  'src/generated/errors.ts',
  'src/generated/brand.ts',
  'src/generated/secrets.ts',
  'src/generated/validate-function.ts',
  'src/generated/body-shapes.ts',
  'src/generated/request-validators.d.ts',
  'src/generated/response-validators.d.ts',
  'src/generated/webhook-validators.d.ts',
];

test.each(readable)('the toy contract gives %s', async (path) => {
  // `.txt`, so that compiler and linter ignore golden files.
  const golden = join(import.meta.dirname, 'golden', `${path.split('/').at(-1)}.txt`);
  await expect(generated.files.get(path)).toMatchFileSnapshot(golden);
});

test('only the readable files and the validators are emitted', () => {
  const validators = ['parameter', 'request', 'response', 'shared', 'webhook'].map(
    (subject) => `src/generated/${subject}-validators.js`,
  );
  const runtime = 'src/generated/validator-runtime.js';
  expect([...generated.files.keys()].sort()).toEqual([...readable, ...validators, runtime].sort());
});

test('validators are functions named after their schemas, laid out line by line', () => {
  const functions = [...generated.files]
    .filter(([path]) => path.endsWith('-validators.js'))
    .flatMap(([path, text]) =>
      [...text.matchAll(/^function (\w+)\(.*\) \{\n[\s\S]*?\n\}$/gm)].map(([body, name]) => ({
        place: `${path.split('/').at(-1)} ${name}`,
        isLaidOut: body.split('\n').every((line) => /^ *(\S.{0,400})?$/.test(line)),
      })),
    );
  expect(functions.filter(({ isLaidOut }) => !isLaidOut)).toEqual([]);
  expect(functions.map(({ place }) => place)).toEqual([
    'parameter-validators.js validateDeleteToy',
    'parameter-validators.js validatePutToy',
    'request-validators.js validateToy',
    'request-validators.js validateBear',
    'response-validators.js noBody',
    'response-validators.js validateBoxClosed',
    'response-validators.js validateToyClosed',
    'response-validators.js validateBearClosed',
    'response-validators.js validateErrorClosed',
    'shared-validators.js validateBall',
  ]);
});

test('a stub refuses', async () => {
  const stubs = generated.operations.map(stubText);
  await expect(stubs.join('\n')).toMatchFileSnapshot(join(import.meta.dirname, 'golden', 'stubs.ts.txt'));
});

test('a second run changes nothing', async () => {
  using fresh = toyProject();
  const first = await generateContract(toyContract, fresh.root);
  expect(writeOutput(toyContract, fresh.root, first).sort()).toEqual([...first.files.keys()].sort());
  expect(scaffoldHandlers(toyContract, fresh.root, first.operations)).toEqual(['deleteToy', 'putToy']);

  const second = await generateContract(toyContract, fresh.root);
  expect([...second.files]).toEqual([...first.files]);
  expect(findDrift(toyContract, fresh.root, second)).toEqual([]);
  expect(writeOutput(toyContract, fresh.root, second)).toEqual([]);
  expect(scaffoldHandlers(toyContract, fresh.root, second.operations)).toEqual([]);
});
