import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../package-root.ts';
import { type DocumentedErrors, documentedErrorsOf } from '../../sandbox/faults/documented-errors.ts';

let errors: DocumentedErrors | undefined;

/** The errors of each operation, as the API document lists them. It is read once, for the first fault rule. */
export function documentedErrors(): DocumentedErrors {
  errors ??= documentedErrorsOf(
    JSON.parse(readFileSync(join(packageRoot(), 'openapi', 'openapi.json'), 'utf8')),
  );
  return errors;
}
