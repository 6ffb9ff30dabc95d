import js from '@eslint/js';
import reactHooks from 'eslint-plugin-react-hooks';
import globals from 'globals';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['build', 'src/**/*.gen.ts'] },
  js.configs.recommended,
  {
    files: ['src/**/*.{ts,tsx}'],
    extends: [tseslint.configs.recommendedTypeChecked, tseslint.configs.stylisticTypeChecked, reactHooks.configs.flat.recommended],
    languageOptions: { parserOptions: { project: 'tsconfig.check.json', tsconfigRootDir: import.meta.dirname } },
    rules: {
      // It warns of libraries that a compiler cannot handle which react-scripts does not run.
      'react-hooks/incompatible-library': 'off',
      '@typescript-eslint/no-confusing-void-expression': 'off',
    },
  },
  { files: ['scripts/**', 'walk/**', 'public/**', '*.mjs'], languageOptions: { globals: { ...globals.node, ...globals.browser } } },
  { files: ['src/setupProxy.js'], languageOptions: { globals: { ...globals.commonjs, ...globals.node }, sourceType: 'commonjs' } },
);
