function translate() {}
