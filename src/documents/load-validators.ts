import { Script } from 'node:vm';
import equal from 'ajv/dist/runtime/equal.js';
import ucs2length from 'ajv/dist/runtime/ucs2length.js';
import uri from 'ajv/dist/runtime/uri.js';
import validationError from 'ajv/dist/runtime/validation_error.js';
import type { ValidateFunction } from '../generated/validate-function.ts';
import type { CompiledPart } from './compile-document.ts';
import { formats } from './formats.ts';

/** By the pointer of the schema. */
export type Validators = ReadonlyMap<string, ValidateFunction>;

// What compiled code requires of Ajv.
const runtime: Readonly<Record<string, unknown>> = {
  'ajv/dist/runtime/equal': moduleOf(equal),
  'ajv/dist/runtime/ucs2length': moduleOf(ucs2length),
  'ajv/dist/runtime/uri': moduleOf(uri),
  'ajv/dist/runtime/validation_error': moduleOf(validationError),
};

/** Runs the code of validators. It comes from `compileDocument`, directly or through the cache. */
export function loadValidators({ code, names }: CompiledPart): Validators {
  const load = new Script(`(function (exports, require, formats) { ${code}\n})`).runInThisContext() as (
    exports: Record<string, ValidateFunction>,
    require: (name: string) => unknown,
    table: typeof formats,
  ) => void;
  const exported: Record<string, ValidateFunction> = {};
  load(exported, requirePart, formats);
  return new Map(Object.entries(names).map(([pointer, name]) => [pointer, exported[name]!]));
}

/** Loaders differ in whether the default import of a CommonJS module is the module or its member `default`. */
function moduleOf(imported: object): object {
  return 'default' in imported ? imported : { default: imported };
}

function requirePart(name: string): unknown {
  if (!Object.hasOwn(runtime, name)) throw new Error(`expected a part of Ajv, got \`${name}\``);
  return runtime[name];
}
