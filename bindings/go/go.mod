module quartermaster.storage/hostvol

go 1.21
