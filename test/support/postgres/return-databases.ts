import { afterAll } from 'vitest';
import { returnDatabases } from './borrow-database.ts';

// A vitest setup file. It runs before each test file, so its hook runs after those of the file.
afterAll(returnDatabases);
